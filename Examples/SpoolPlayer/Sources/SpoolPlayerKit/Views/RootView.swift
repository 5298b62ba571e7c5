import SwiftUI

/// A screen of the app.
enum Screen: Hashable {
    case library, player, storage, offline, accounts
}

/// The root view of the app.
public struct RootView: View {
    @Bindable private var app: AppModel

    /// Creates the root view for a model.
    public init(_ app: AppModel) { self.app = app }

    /// The screens, as tabs.
    public var body: some View {
        TabView(selection: $app.screen) {
            Tab("Library", systemImage: "music.note.list", value: Screen.library) { LibraryView() }
            Tab("Player", systemImage: "play.circle", value: Screen.player) { PlayerView() }
            Tab("Storage", systemImage: "internaldrive", value: Screen.storage) { StorageView() }
            Tab("Offline", systemImage: "airplane", value: Screen.offline) { OfflineView() }
            Tab("Accounts", systemImage: "person.crop.circle", value: Screen.accounts) { AccountsView() }
        }
        .environment(app)
        .task { await app.followEvents() }
        .task {
            useAudioSession()
            // Resumes unfinished downloads from previous launches.
            await app.offline.resume()
        }
    }
}
