import Dispatch
import Synchronization
import TrunklineCallKit
import TrunklineClientMachines

/// A call system that notes when its events reach the phone and when the phone's requests arrive.
final class TimedSystem: CallSystem {
  private let system: any CallSystem
  private let marks: Marks
  private let answer = Mutex<SystemActionID?>(nil)
  /// Told on the phone's queue, after the mark.
  private let noted: @Sendable (String) -> Void

  init(_ system: any CallSystem, _ marks: Marks, noted: @escaping @Sendable (String) -> Void) {
    (self.system, self.marks, self.noted) = (system, marks, noted)
  }

  func attach(to queue: DispatchQueue, _ events: @escaping @Sendable (CallSystemEvent) -> Void) {
    system.attach(to: queue) { [self] event in
      switch event {
      case .pushed:
        marks.note("pushed")
        events(event)
        return marks.note("pushTurnEnded")
      case .perform(let id, .answer, _): answer.withLock { $0 = id }
      case .audioActivated: marks.note("didActivate")
      case .reported(_, nil): noted("reported")
      default: break
      }
      events(event)
    }
  }

  func perform(_ request: CallSystemRequest) {
    switch request {
    case .report: marks.note("report")
    case .complete(let id, true) where answer.withLock({ $0 }) == id: marks.note("fulfilled")
    default: break
    }
    system.perform(request)
  }
}
