import Foundation
import TrunklineBytes

/// Converts between CallKit's actions and the machine's requests.
extension SystemMachine.Request {
  /// Nil for an action that CallKit does not have.
  init?(_ action: CXAction) {
    switch action {
    case let action as CXStartCallAction: self = .start(Identifier(action.callUUID), SystemMachine.Caller(action.handle))
    case let action as CXAnswerCallAction: self = .answer(Identifier(action.callUUID))
    case let action as CXEndCallAction: self = .end(Identifier(action.callUUID))
    case let action as CXSetHeldCallAction: self = .hold(Identifier(action.callUUID), action.isOnHold)
    case let action as CXSetMutedCallAction: self = .mute(Identifier(action.callUUID), action.isMuted)
    case let action as CXPlayDTMFCallAction: self = .digits(Identifier(action.callUUID), action.digits)
    case let action as CXSetGroupCallAction:
      self = .group(Identifier(action.callUUID), action.callUUIDToGroupWith.map { Identifier($0) })
    default:
      guard #available(iOS 26.0, macOS 26.0, *), let action = action as? CXSetTranslatingCallAction else { return nil }
      self = .translate(
        Identifier(action.callUUID), action.isTranslating, from: action.localLanguage, to: action.remoteLanguage)
    }
  }

  /// The action for the delegate, with the uuid and the details of the app's own action, if the app requested it.
  func action(of original: CXAction?) -> CXAction {
    let (uuid, call) = (original?.uuid ?? UUID(), UUID(self.call))
    switch self {
    case .start(_, let caller):
      return CXStartCallAction(copying: uuid, call: call, handle: CXHandle(caller), of: original as? CXStartCallAction)
    case .answer: return CXAnswerCallAction(copying: uuid, call: call)
    case .end: return CXEndCallAction(copying: uuid, call: call)
    case .hold(_, let isOn): return CXSetHeldCallAction(copying: uuid, call: call, onHold: isOn)
    case .mute(_, let isOn): return CXSetMutedCallAction(copying: uuid, call: call, muted: isOn)
    case .digits(_, let digits):
      let type = (original as? CXPlayDTMFCallAction)?.type ?? .singleTone
      return CXPlayDTMFCallAction(copying: uuid, call: call, digits: digits, type: type)
    case .group(_, let other):
      return CXSetGroupCallAction(copying: uuid, call: call, callUUIDToGroupWith: other.map { UUID($0) })
    case .translate(_, let isOn, let local, let remote):
      guard #available(iOS 26.0, macOS 26.0, *) else { return CXCallAction(copying: uuid, call: call) }
      return CXSetTranslatingCallAction(
        copying: uuid, call: call, isTranslating: isOn, localLanguage: local, remoteLanguage: remote)
    }
  }
}

extension CXAction {
  /// Calls the delegate's method for this kind of action.
  func perform(_ provider: CXProvider, _ delegate: any CXProviderDelegate) {
    switch self {
    case let action as CXStartCallAction: delegate.provider(provider, perform: action)
    case let action as CXAnswerCallAction: delegate.provider(provider, perform: action)
    case let action as CXEndCallAction: delegate.provider(provider, perform: action)
    case let action as CXSetHeldCallAction: delegate.provider(provider, perform: action)
    case let action as CXSetMutedCallAction: delegate.provider(provider, perform: action)
    case let action as CXSetGroupCallAction: delegate.provider(provider, perform: action)
    case let action as CXPlayDTMFCallAction: delegate.provider(provider, perform: action)
    default:
      guard #available(iOS 26.0, macOS 26.0, *), let action = self as? CXSetTranslatingCallAction else { return }
      delegate.provider(provider, perform: action)
    }
  }
}
