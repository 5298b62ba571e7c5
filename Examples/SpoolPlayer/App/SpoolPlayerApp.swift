import SpoolPlayerKit
import SwiftUI

/// The app. All windows share one model, because only one cache can have the directory open.
@main
struct SpoolPlayerApp: App {
    @State private var app = AppModel()

    var body: some Scene {
        WindowGroup { RootView(app) }
    }
}
