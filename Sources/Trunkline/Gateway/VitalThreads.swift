import Platform

/// Which threads a gateway cannot do without, by their names: docs/design/health.md.
enum VitalThreads {
  /// True: `/healthz` says that the thread hangs, and then its hang ends the process. False: only `/readyz` says so, as for `store`, `directory`,
  /// `pages`, `push`, `webhook` and `verify`, whose work waits while calls continue.
  @Sendable static func contains(_ name: String) -> Bool {
    ["control", "admin"].contains(name) || ["app-", "media-", "dtls-"].contains { name.hasPrefix($0) }
  }
}
