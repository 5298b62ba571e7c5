import SwiftUI

/// A switch that disconnects the cache from the network. Stored media continues to play, and other media waits.
///
/// The switch does not change the system's network. Media that bypasses the cache still plays from its origin. This
/// applies to AirPlay, and to HLS if the server in the app can't listen.
struct OfflineSwitch: View {
    @Environment(AppModel.self) private var app

    var body: some View {
        @Bindable var app = app
        VStack(alignment: .leading) {
            Toggle("Simulate no network", systemImage: "wifi.slash", isOn: $app.isOffline)
            Text("Disconnects the cache only. Media that bypasses the cache, as with AirPlay, still plays.")
                .font(.footnote)
                .foregroundStyle(.secondary)
        }
    }
}
