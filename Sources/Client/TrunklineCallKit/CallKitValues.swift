import Foundation
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

// Apple's values and the phone's.

extension CXHandle {
  convenience init(_ handle: Handle) {
    let type: HandleType =
      switch handle.k {
      case .phone: .phoneNumber
      case .email: .emailAddress
      case .generic: .generic
      }
    self.init(type: type, value: handle.h)
  }
}

extension Handle {
  init(_ handle: CXHandle) {
    let kind: Kind =
      switch handle.type {
      case .phoneNumber: .phone
      case .emailAddress: .email
      default: .generic
      }
    self.init(k: kind, h: handle.value)
  }
}

extension CXCallEndedReason {
  init(_ reason: CallEndedReason) {
    self =
      switch reason {
      case .failed: .failed
      case .remoteEnded: .remoteEnded
      case .unanswered: .unanswered
      case .answeredElsewhere: .answeredElsewhere
      case .declinedElsewhere: .declinedElsewhere
      }
  }
}

extension ReportRefusal {
  /// By domain and code: codes that this version does not know occur.
  init(_ error: any Error) {
    let error = error as NSError
    let code = error.domain == CXErrorDomainIncomingCall ? CXErrorCodeIncomingCallError.Code(rawValue: error.code) : nil
    self =
      switch code {
      case .callUUIDAlreadyExists: .exists
      case .filteredByDoNotDisturb: .doNotDisturb
      case .filteredByBlockList: .blocked
      default: .other(error.code)
      }
  }
}

extension SystemRequest {
  /// What to ask the call controller for.
  var action: CXAction {
    switch self {
    case .start(let call, let peer): CXStartCallAction(call: call.uuid, handle: CXHandle(peer))
    case .answer(let call): CXAnswerCallAction(call: call.uuid)
    case .end(let call): CXEndCallAction(call: call.uuid)
    case .hold(let call, let isOn): CXSetHeldCallAction(call: call.uuid, onHold: isOn)
    case .mute(let call, let isOn): CXSetMutedCallAction(call: call.uuid, muted: isOn)
    case .digits(let call, let digits): CXPlayDTMFCallAction(call: call.uuid, digits: digits, type: .singleTone)
    case .group(let call, let other): CXSetGroupCallAction(call: call.uuid, callUUIDToGroupWith: other?.uuid)
    }
  }

  init?(_ action: CXAction) {
    switch action {
    case let action as CXStartCallAction: self = .start(Identifier(action.callUUID), Handle(action.handle))
    case let action as CXAnswerCallAction: self = .answer(Identifier(action.callUUID))
    case let action as CXEndCallAction: self = .end(Identifier(action.callUUID))
    case let action as CXSetHeldCallAction: self = .hold(Identifier(action.callUUID), action.isOnHold)
    case let action as CXSetMutedCallAction: self = .mute(Identifier(action.callUUID), action.isMuted)
    case let action as CXPlayDTMFCallAction: self = .digits(Identifier(action.callUUID), action.digits)
    case let action as CXSetGroupCallAction:
      self = .group(Identifier(action.callUUID), action.callUUIDToGroupWith.map { Identifier($0) })
    default: return nil
    }
  }
}
