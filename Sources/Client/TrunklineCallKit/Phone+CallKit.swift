import AppProtocol

#if canImport(ObjectiveC)
  public import Foundation
#endif

extension Phone {
  /// The phone on the system's call screens: incoming calls by VoIP push, answers on the lock screen, Recents.
  ///
  /// - Parameters:
  ///   - gateway: `wss://host/v1/connect`.
  ///   - calls: how calls look.
  ///   - forcesUnlock: without a microphone permission a call is reported as video, so that iOS unlocks and the app can ask.
  ///   - token: a login token of the app's backend. Before the first unlock it is not needed: a push lets the phone in for its call.
  public convenience init(
    _ gateway: String, calls: CallKitSystem.Settings = .init(), forcesUnlock: Bool = false,
    token: @escaping @Sendable () async throws -> String
  ) {
    self.init(
      gateway, system: CallKitSystem(calls), audio: SystemParts.audio(), sockets: SystemParts.sockets(),
      secrets: SystemParts.secrets(),
      paths: SystemParts.paths(), isBackground: SystemParts.startsInBackground, forcesUnlock: forcesUnlock,
      maximumCalls: calls.maximumCalls, token: token)
  }

  /// The activity of a tap in Recents, in Contacts, or of Siri: `.onContinueUserActivity(Phone.callActivity) { phone.call($0) }`.
  public static let callActivity = "INStartCallIntent"

  /// Calls whom the activity names. Nil: it is no call, or names nobody.
  @discardableResult
  public func call(_ activity: NSUserActivity) -> Call? {
    guard let intent = activity.interaction?.intent as? INStartCallIntent, let person = intent.contacts?.first?.personHandle,
      let value = person.value, !value.isEmpty
    else { return nil }
    let kind: Handle.Kind =
      switch person.type {
      case .phoneNumber: .phone
      case .emailAddress: .email
      default: value.hasPrefix("+") ? .phone : .generic
      }
    return call(Handle(k: kind, h: value))
  }
}
