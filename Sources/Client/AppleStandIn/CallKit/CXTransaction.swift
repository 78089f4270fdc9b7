public import Foundation

/// Actions that are performed one after the other (R7).
open class CXTransaction: NSObject, @unchecked Sendable {  // `stored` is behind `lock`
  public let uuid = UUID()
  private let lock = NSLock()
  private var stored: [CXAction]

  public init(actions: [CXAction]) { stored = actions }
  public convenience init(action: CXAction) { self.init(actions: [action]) }

  public var actions: [CXAction] { lock.withLock { stored } }
  public var isComplete: Bool { actions.allSatisfy(\.isComplete) }
  public func addAction(_ action: CXAction) { lock.withLock { stored.append(action) } }
}
