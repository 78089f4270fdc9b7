import Bytes
import Platform

/// What the admin endpoints answer, as bytes; a server elsewhere sends them. Any thread.
public struct HealthPages: Sendable {
  public struct Page: Hashable, Sendable {
    public let status: Int
    public let contentType: String
    public let body: [UInt8]
    public init(status: Int, contentType: String, body: [UInt8]) {
      (self.status, self.contentType, self.body) = (status, contentType, body)
    }
  }

  private let registry: MetricRegistry
  private let readiness: Readiness
  private let version: String
  private let hung: @Sendable () -> [ThreadWatch.Hung]

  /// `hung`: threads that hang, `ThreadWatch.hung`.
  public init(
    registry: MetricRegistry, readiness: Readiness, version: String, hung: @escaping @Sendable () -> [ThreadWatch.Hung] = { [] }
  ) {
    (self.registry, self.readiness, self.version, self.hung) = (registry, readiness, version, hung)
  }

  /// The page for `/healthz`, `/readyz` or `/metrics`; nil for any other path.
  public func page(_ path: String) -> Page? {
    switch path {
    case "/healthz": healthz()
    case "/readyz": readyz()
    case "/metrics": Page(status: 200, contentType: MetricRegistry.contentType, body: registry.render())
    default: nil
    }
  }

  /// 200 while no thread hangs, else 503 with those that do:
  ///
  ///     {"status":"hung","version":"0.1.0","threads":[{"name":"store","milliseconds":2100}]}
  private func healthz() -> Page {
    let hung = hung()
    var out = JSONText()
    out.field("status", hung.isEmpty ? "ok" : "hung")
    out.field("version", version)
    if !hung.isEmpty {
      out.field(
        "threads",
        objects: hung.map { thread in
          var entry = JSONText()
          entry.field("name", thread.thread)
          entry.field("milliseconds", thread.age.nanoseconds / 1_000_000)
          return entry
        })
    }
    return Page(status: hung.isEmpty ? 200 : 503, contentType: JSONText.contentType, body: out.object)
  }

  /// 200 if every component is ready, else 503; with each component, why it is not, and what to note of one that is.
  ///
  ///     {"ready":false,"components":[{"name":"store","ready":false,"reason":"disk full"},…]}
  private func readyz() -> Page {
    let report = readiness.report
    let ready = !report.isEmpty && report.allSatisfy { $0.reason == nil }
    var out = JSONText()
    out.field("ready", ready)
    out.field(
      "components",
      objects: report.map { condition in
        var entry = JSONText()
        entry.field("name", condition.component)
        entry.field("ready", condition.reason == nil)
        if let reason = condition.reason { entry.field("reason", reason) }
        if let note = condition.note { entry.field("note", note) }
        return entry
      })
    return Page(status: ready ? 200 : 503, contentType: JSONText.contentType, body: out.object)
  }
}
