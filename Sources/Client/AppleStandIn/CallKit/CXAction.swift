public import Foundation

/// An action on a call. One that a delegate received is completed once, before `timeoutDate` (R6).
open class CXAction: NSObject, @unchecked Sendable {  // mutable state is behind `lock`
  public let uuid: UUID
  let lock = NSLock()
  private var link: (process: AppProcess, id: Int, until: Date)?
  private var isDone = false

  public override init() { uuid = UUID() }
  /// The system gives a delegate another object than the one that the app requested, with the same uuid.
  init(copying uuid: UUID) { self.uuid = uuid }

  public var isComplete: Bool { lock.withLock { isDone } }
  /// When the system gives up; for an action that no delegate received, now.
  public var timeoutDate: Date { lock.withLock { link?.until } ?? Date() }

  open func fulfill() { complete(isFulfilled: true, date: nil) }
  open func fail() { complete(isFulfilled: false, date: nil) }

  func deliver(by process: AppProcess, id: Int, until: Date) { lock.withLock { link = (process, id, until) } }

  func complete(isFulfilled: Bool, date: Date?) {
    let (process, id) = lock.withLock {
      isDone = true
      return (link?.process, link?.id ?? 0)
    }
    process?.completed(self, id: id, isFulfilled: isFulfilled, date: date)
  }
}
