import SwiftUI

/// A switch that disconnects the cache from the network. Stored media continues to play, and other media waits.
///
/// It does not change the system's network. Media that bypasses the cache still plays from its origin. This applies to
/// AirPlay, and to HLS if the server in the app can't listen.
struct OfflineSwitch: View {
    @Environment(AppModel.self) private var app

    var body: some View {
        @Bindable var app = app
        VStack(alignment: .leading) {
            Toggle("Without a network", systemImage: "wifi.slash", isOn: $app.isOffline)
            Text("For the cache only: what plays past it, as over AirPlay, still comes from its origin.")
                .font(.footnote)
                .foregroundStyle(.secondary)
        }
    }
}
