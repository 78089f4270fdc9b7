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
  ///   - sealsCallers: pushes hold the caller sealed for a key in the keychain: no push service sees who calls.
  ///   - token: a login token of the app's backend. Before the first unlock it is not needed: a push lets the phone in for its call.
  public convenience init(
    _ gateway: String, calls: CallKitSystem.Settings = .init(), forcesUnlock: Bool = false, sealsCallers: Bool = false,
    token: @escaping @Sendable () async throws -> String
  ) {
    // no push comes to the simulator, and its CallKit shows nothing: the state says so, and the app's own screens have the calls
    let isSimulator = Application.isSimulator
    let system: any CallSystem = isSimulator ? NoCallSystem(saysUnsupported: true) : CallKitSystem(calls)
    self.init(
      gateway, system: system, audio: SystemParts.audio(ownsSession: isSimulator), sockets: SystemParts.sockets(),
      secrets: SystemParts.secrets(), paths: SystemParts.paths(), routes: SessionRoutes(),
      isBackground: SystemParts.startsInBackground,
      forcesUnlock: forcesUnlock, maximumCalls: calls.maximumCalls, sealsCallers: sealsCallers, token: token)
  }

  /// The phone with calls on the app's own screens, where CallKit is not allowed: calls come while the app is open.
  ///
  /// - Parameters:
  ///   - gateway: `wss://host/v1/connect`.
  ///   - system: `.none`, or what the app has instead of CallKit.
  ///   - maximumCalls: a further one is busy on this device.
  ///   - token: a login token of the app's backend.
  public convenience init(
    _ gateway: String, system: any CallSystem, maximumCalls: Int = 2, token: @escaping @Sendable () async throws -> String
  ) {
    self.init(
      gateway, system: system, audio: SystemParts.audio(ownsSession: true), sockets: SystemParts.sockets(),
      secrets: SystemParts.secrets(), paths: SystemParts.paths(), routes: SessionRoutes(), maximumCalls: maximumCalls,
      token: token)
  }

  /// Asks the user for the microphone, unless that was done before, and keeps the answer. Only while the app is open: with a locked screen iOS
  /// shows no question (R23).
  public func askForMicrophone() async { microphone(await Application.askForMicrophone()) }

  /// The activity of a tap in Recents, in Contacts, or of Siri: `.onContinueUserActivity(Phone.callActivity) { phone.call($0) }`.
  public static let callActivity = "INStartCallIntent"

  /// Calls the party that the activity names. Nil: it is not a call, or names no party.
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
    noteStartCall(kind)
    return call(Handle(k: kind, h: value))
  }
}
