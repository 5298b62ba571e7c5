import SpoolAVFoundation
import SwiftUI

/// A list of the media for offline playback, with the progress of each download.
struct OfflineView: View {
    @Environment(AppModel.self) private var app

    var body: some View {
        @Bindable var model = app.offline
        NavigationStack {
            List {
                Section {
                    OfflineSwitch()
                    TextField("Set", text: $model.name)
                    if let message = model.message { Text(message).foregroundStyle(.red) }
                } footer: {
                    Text("To add a title to this set, choose “Download” in its menu.")
                }
                ForEach(model.sets, id: \.self) { SetSection(name: $0) }
                StreamSection(streams: model.streams)
            }
            .navigationTitle("Offline")
        }
        .task { await model.refresh() }
    }
}

/// A section for one set, with its progress and its files.
struct SetSection: View {
    let name: String
    @Environment(AppModel.self) private var app
    @State private var set: DownloadSet?

    var body: some View {
        Section(name) {
            ProgressView(value: set?.fractionCompleted ?? 0) {
                Text((set?.storedByteCount ?? 0).formatted(.byteCount(style: .file)))
            }
            .task(id: name) {
                for await state in app.cache.downloads.states(of: name) { set = state }
            }
            ForEach(set?.items ?? []) { ItemRow(item: $0) }
            Button("Remove this set", role: .destructive) { Task { await app.offline.release(name) } }
        }
    }
}

/// A row for one file in a set.
struct ItemRow: View {
    let item: DownloadSet.Item

    var body: some View {
        VStack(alignment: .leading) {
            Text(item.redactedURL).lineLimit(1).truncationMode(.head)
            Text(state).font(.footnote).foregroundStyle(item.error == nil ? Color.secondary : Color.red)
        }
    }

    private var state: String {
        if item.isComplete { return "Complete" }
        if let error = item.error { return error.localizedDescription }
        if item.isRunning { return "\(item.storedByteCount.formatted(.byteCount(style: .file))) so far" }
        // Credentials are not saved, so the user must add the item again from its account.
        return item.url == nil ? "To resume, add the file again from its account" : "Not complete"
    }
}

/// The streams that are available or downloading for offline playback.
struct StreamSection: View {
    let streams: OfflineStreams
    @Environment(AppModel.self) private var app

    var body: some View {
        if !streams.states.isEmpty {
            Section("Streams") {
                ForEach(streams.states.sorted { $0.value.name < $1.value.name }, id: \.key) { id, stream in
                    HStack {
                        ProgressView(value: stream.fraction) {
                            Text(stream.name)
                            if let error = stream.error { Text(error).foregroundStyle(.red) }
                        }
                        // The button also cancels a download in progress.
                        Button("Remove", systemImage: "trash", role: .destructive) {
                            Task { await app.offline.remove(stream: id) }
                        }
                    }
                    .labelStyle(.iconOnly)
                    .buttonStyle(.borderless)
                }
            }
        }
    }
}
