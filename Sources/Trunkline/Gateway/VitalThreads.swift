import TrunklinePlatform

/// The names of the threads that a gateway cannot do without: docs/design/health.md.
enum VitalThreads {
  /// True: `/healthz` reports that the thread hangs, and then its hang ends the process. False: only `/readyz` reports it, as
  /// for `store`, `directory`, `pages`, `push`, `webhook` and `verify`, whose work waits while calls continue.
  @Sendable static func contains(_ name: String) -> Bool {
    ["control", "admin"].contains(name) || ["app-", "media-", "dtls-"].contains { name.hasPrefix($0) }
  }
}
