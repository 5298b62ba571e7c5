import SwiftUI

/// A part of the app.
enum Screen: Hashable {
    case library, player, storage, offline, accounts
}

/// All of the app.
public struct RootView: View {
    @Bindable private var app: AppModel

    /// Shows an app's state.
    public init(_ app: AppModel) { self.app = app }

    /// The screens, side by side.
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
            // Goes on with what sets lack since the last launch.
            await app.offline.resume()
        }
    }
}
