import SwiftUI

/// Takes the network away from the cache: what is stored plays on, what is not waits.
///
/// It is not the system's network. An HLS stream that is not stored fails at the server inside the app, which to a player
/// is no lost network: after some tries it plays from its origin, past the cache.
struct OfflineSwitch: View {
    @Environment(AppModel.self) private var app

    var body: some View {
        @Bindable var app = app
        Toggle("Without a network", systemImage: "wifi.slash", isOn: $app.isOffline)
    }
}
