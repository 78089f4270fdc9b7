import Platform

/// Which threads a gateway cannot do without, by their names: docs/design/health.md.
enum VitalThreads {
  /// True: a hang of the thread ends the process. False: only `/healthz` says so, as for `store`, `directory`, `push`, `webhook` and `verify`,
  /// whose work waits while calls go on.
  static func contains(_ name: String) -> Bool {
    ["control", "admin"].contains(name) || ["app-", "media-", "dtls-"].contains { name.hasPrefix($0) }
  }
}
