import SwiftUI

/// Takes the network away from the cache: what is stored plays on, what is not waits.
///
/// It is not the system's network. What plays past the cache comes from its origin all the same: over AirPlay, and HLS where
/// the server inside the app can't listen.
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
