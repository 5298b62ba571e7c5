import SwiftUI

/// A list of media that can be played without an account.
struct LibraryView: View {
    var body: some View {
        NavigationStack {
            List {
                Section("Videos") {
                    ForEach(Samples.films) { TitleRow(title: $0, titles: Samples.films) }
                }
                Section("Readings") {
                    ForEach(Samples.readings) { TitleRow(title: $0, titles: Samples.readings) }
                }
            }
            .navigationTitle("Library")
        }
    }
}

/// A row for a title, which plays when it is tapped. The other titles in the list are added to the queue.
struct TitleRow: View {
    let title: Title
    let titles: [Title]
    @Environment(AppModel.self) private var app

    var body: some View {
        HStack {
            Button {
                app.play(title, of: titles)
            } label: {
                VStack(alignment: .leading) {
                    Text(title.name)
                    if let words = app.preloads.words(for: title) {
                        Text(words).font(.footnote).foregroundStyle(.secondary)
                    }
                    if let problem = app.offline.problem(with: title) {
                        Text("Not downloaded: \(problem)").font(.footnote).foregroundStyle(.red)
                    }
                }
                .frame(maxWidth: .infinity, alignment: .leading)
                .contentShape(Rectangle())
            }
            .buttonStyle(.plain)
            TitleMenu(title: title)
        }
    }
}
