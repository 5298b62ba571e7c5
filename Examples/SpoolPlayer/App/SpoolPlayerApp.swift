import SpoolPlayerKit
import SwiftUI

/// The app: one model for all its windows, since one cache has a directory.
@main
struct SpoolPlayerApp: App {
    @State private var app = AppModel()

    var body: some Scene {
        WindowGroup { RootView(app) }
    }
}
