import Synchronization

/// Which parts of the process are ready to handle calls, and if not, why. Components report here; `Telemetry` renders
/// `/readyz`. Any thread.
public final class Readiness: Sendable {
  public struct Condition: Hashable, Sendable {
    public let component: String
    /// nil when ready.
    public let reason: String?
    /// A note for the operator about a component that is ready.
    public let note: String?
    public init(component: String, reason: String?, note: String? = nil) {
      (self.component, self.reason, self.note) = (component, reason, note)
    }
  }

  private let conditions = Mutex<[String: Condition]>([:])

  public init() {}

  /// Reports a component as ready, or as not ready with a reason an operator can act on.
  public func set(_ component: String, ready: Bool, why: @autoclosure () -> String = "not ready", note: String? = nil) {
    let condition = Condition(component: component, reason: ready ? nil : why(), note: ready ? note : nil)
    conditions.withLock { table in
      guard table[component] != nil || table.count < Limits.readinessComponents else { return }
      table[component] = condition
    }
  }

  /// Removes a component from the report.
  public func remove(_ component: String) { _ = conditions.withLock { $0.removeValue(forKey: component) } }

  /// All components by name.
  public var report: [Condition] {
    conditions.withLock { Array($0.values) }.sorted { $0.component < $1.component }
  }

  /// True when there is a component and every one is ready.
  public var isReady: Bool {
    conditions.withLock { table in !table.isEmpty && table.values.allSatisfy { $0.reason == nil } }
  }
}
