import AppleStandIn
import TrunklineAppProtocol
import TrunklineClientMachines

/// The system's words and the phone's, which do not know each other.
extension Handset {
  static func request(_ request: SystemMachine.Request) -> SystemRequest {
    switch request {
    case .start(let id, let caller): .start(id, Handle(k: .phone, h: caller.handle))
    case .answer(let id): .answer(id)
    case .end(let id): .end(id)
    case .hold(let id, let isOn): .hold(id, isOn)
    case .mute(let id, let isOn): .mute(id, isOn)
    case .digits(let id, let digits): .digits(id, digits)
    case .group(let id, let other): .group(id, other)
    case .translate: preconditionFailure("no test translates calls")
    }
  }
  static func request(_ request: SystemRequest) -> SystemMachine.Request {
    switch request {
    case .start(let id, let peer): .start(id, .init(peer.h))
    case .answer(let id): .answer(id)
    case .end(let id): .end(id)
    case .hold(let id, let isOn): .hold(id, isOn)
    case .mute(let id, let isOn): .mute(id, isOn)
    case .digits(let id, let digits): .digits(id, digits)
    case .group(let id, let other): .group(id, other)
    }
  }
  static func reason(_ reason: CallEndedReason) -> SystemMachine.EndedReason {
    switch reason {
    case .failed: .failed
    case .remoteEnded: .remoteEnded
    case .unanswered: .unanswered
    case .answeredElsewhere: .answeredElsewhere
    case .declinedElsewhere: .declinedElsewhere
    }
  }
}
