import TrunklineBytes
import TrunklinePlatform

/// The answers of the admin endpoints as bytes; a server elsewhere sends them. Any thread.
public struct HealthHandlers: Sendable {
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
  private let isVital: @Sendable (String) -> Bool
  private let hung: @Sendable () -> [ThreadWatch.Hung]

  /// - Parameters:
  ///   - hung: the threads that hang, `ThreadWatch.hung`.
  ///   - isVital: whether calls need a thread of this name: `/healthz` covers vital threads alone, `/readyz` covers the others,
  ///     too.
  public init(
    registry: MetricRegistry, readiness: Readiness, version: String, hung: @escaping @Sendable () -> [ThreadWatch.Hung] = { [] },
    isVital: @escaping @Sendable (String) -> Bool = { _ in true }
  ) {
    (self.registry, self.readiness, self.version) = (registry, readiness, version)
    (self.isVital, self.hung) = (isVital, hung)
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

  /// 200 while no vital thread hangs, else 503 with those that do. Other threads are left out: a supervisor that restarts a
  /// process for this page would end calls, and repair no disk.
  ///
  ///     {"status":"hung","version":"0.1.0","threads":[{"name":"control","milliseconds":2100}]}
  private func healthz() -> Page {
    let hung = hung().filter { isVital($0.thread) }
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

  /// 200 if every component is ready and no thread hangs, else 503; with each component, why it is not ready, and notes on one
  /// that is. A thread that hangs, and is not vital, is a component `thread NAME`.
  ///
  ///     {"ready":false,"components":[{"name":"store","ready":false,"reason":"disk full"},…]}
  private func readyz() -> Page {
    let report = readiness.report
    let hung = hung().filter { !isVital($0.thread) }
    let ready = !report.isEmpty && report.allSatisfy { $0.reason == nil } && hung.isEmpty
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
      }
        + hung.map { thread in
          var entry = JSONText()
          entry.field("name", "thread \(thread.thread)")
          entry.field("ready", false)
          entry.field("reason", "has been in one step for \(thread.age.nanoseconds / 1_000_000) ms")
          return entry
        })
    return Page(status: ready ? 200 : 503, contentType: JSONText.contentType, body: out.object)
  }
}
