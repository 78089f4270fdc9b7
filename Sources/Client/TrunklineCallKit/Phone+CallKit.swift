import TrunklineAppProtocol

#if canImport(ObjectiveC)
  public import Foundation
#endif

extension Phone {
  /// The phone on the system's call screens: incoming calls by VoIP push, answers on the lock screen, Recents.
  ///
  /// - Parameters:
  ///   - gateway: `wss://host/v1/connect`.
  ///   - calls: the appearance of calls.
  ///   - forcesUnlock: without a microphone permission a call is reported as video, so that iOS unlocks and the app can request
  ///     it.
  ///   - sealsCallers: pushes contain the caller sealed for a key in the keychain: no push service can read it.
  ///   - token: a login token from the app's backend. It is not needed before the first unlock: a push admits the phone for its
  ///     call.
  public convenience init(
    _ gateway: String, calls: CallKitSystem.Settings = .init(), forcesUnlock: Bool = false, sealsCallers: Bool = false,
    token: @escaping @Sendable () async throws -> String
  ) {
    // the simulator gets no push, and its CallKit shows no call: the state reports it, and the app's own screens show the calls
    let isSimulator = Application.isSimulator
    let system: any CallSystem = isSimulator ? NoCallSystem(saysUnsupported: true) : CallKitSystem(calls)
    self.init(
      gateway, system: system, audio: SystemParts.audio(ownsSession: isSimulator), sockets: SystemParts.sockets(),
      secrets: SystemParts.secrets(), paths: SystemParts.paths(), routes: SessionRoutes(),
      isBackground: SystemParts.startsInBackground,
      forcesUnlock: forcesUnlock, maximumCalls: calls.maximumCalls, sealsCallers: sealsCallers, token: token)
  }

  /// The phone with calls on the app's own screens, where CallKit is not allowed: calls arrive while the app is open.
  ///
  /// - Parameters:
  ///   - gateway: `wss://host/v1/connect`.
  ///   - system: `.none`, or the app's replacement of CallKit.
  ///   - maximumCalls: a further one is busy on this device.
  ///   - token: a login token from the app's backend.
  public convenience init(
    _ gateway: String, system: any CallSystem, maximumCalls: Int = 2, token: @escaping @Sendable () async throws -> String
  ) {
    self.init(
      gateway, system: system, audio: SystemParts.audio(ownsSession: true), sockets: SystemParts.sockets(),
      secrets: SystemParts.secrets(), paths: SystemParts.paths(), routes: SessionRoutes(), maximumCalls: maximumCalls,
      token: token)
  }

  /// Requests the microphone permission, if the user has not decided yet, and applies the answer. Only while the app is open:
  /// with a locked screen iOS shows no prompt (R23).
  public func askForMicrophone() async { microphone(await Application.askForMicrophone()) }

  /// The activity of a tap in Recents, in Contacts, or of Siri: `.onContinueUserActivity(Phone.callActivity) { phone.call($0) }`.
  public static let callActivity = "INStartCallIntent"

  /// Calls the person whom the activity names. Nil: it is not a call, or names no person.
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
