import SpoolAVFoundation
import SwiftUI

/// The size, the capacity and the contents of the cache.
struct StorageView: View {
    @Environment(AppModel.self) private var app
    @State private var asksToRemoveAll = false

    var body: some View {
        let model = app.storage
        NavigationStack {
            List {
                Section {
                    CacheStatusView(app.cache)
                    CapacityPicker(model: model)
                    Button("Remove all", role: .destructive) { asksToRemoveAll = true }
                        .disabled(model.resources.isEmpty)
                    if let message = model.message { Text(message).foregroundStyle(.red) }
                }
                Section("Stored") {
                    ForEach(model.resources, id: \.key) { StoredRow(resource: $0, model: model) }
                }
            }
            .navigationTitle("Storage")
            .confirmationDialog("Remove everything, including pinned media?", isPresented: $asksToRemoveAll) {
                Button("Remove all", role: .destructive) { Task { await model.removeAll() } }
            }
        }
        .task { await model.follow() }
    }
}

/// A picker for the capacity of the cache.
struct CapacityPicker: View {
    let model: StorageModel
    @AppStorage(Capacity.key) private var gigabytes = Capacity.standard

    var body: some View {
        Picker("Capacity", selection: $gigabytes) {
            ForEach(Capacity.choices, id: \.self) { Text(Capacity.name(ofGigabytes: $0)).tag($0) }
        }
        .onChange(of: gigabytes) { _, gigabytes in
            Task { await model.setCapacity(Capacity.of(gigabytes: gigabytes)) }
        }
    }
}

/// A row for a completely or partially stored file.
struct StoredRow: View {
    let resource: StoredResource
    let model: StorageModel

    var body: some View {
        HStack {
            VStack(alignment: .leading) {
                Text(resource.redactedURL).lineLimit(1).truncationMode(.head)
                Text(size).font(.footnote).foregroundStyle(.secondary)
            }
            Spacer()
            Button(resource.isPinned ? "Unpin" : "Pin", systemImage: resource.isPinned ? "pin.fill" : "pin") {
                Task { await model.setPinned(!resource.isPinned, resource) }
            }
            Button("Remove", systemImage: "trash", role: .destructive) { Task { await model.remove(resource) } }
        }
        .labelStyle(.iconOnly)
        .buttonStyle(.borderless)
    }

    private var size: String {
        let stored = resource.storedByteCount.formatted(.byteCount(style: .file))
        guard let length = resource.length, !resource.isComplete else { return stored }
        return "\(stored) of \(length.formatted(.byteCount(style: .file)))"
    }
}
