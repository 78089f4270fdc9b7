import AppleStandIn
import CallFlow
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

@testable import TrunklineClient

/// What a person does, and the app's own buttons.
extension Handset {
  func tap(_ tap: SystemMachine.Tap) { give(system: .tap(tap)) }
  func lock() { give(system: .locked(true)) }
  func cellular(_ isOn: Bool) {
    if phone != nil { traces.last?.note(.interrupted(isOn), world.now) }
    give(system: .cellular(isOn))
  }
  func dial(_ call: CallID, _ number: String) { give(.dial(call, to: Handle(k: .phone, h: number))) }
  /// What the app's own buttons do.
  func act(_ call: CallID, _ action: PhoneMachine.CallAction) { give(.act(call, action)) }
  /// The system's service for calls has crashed: it has forgotten all of them, and says so.
  func reset() { give(system: .systemReset(.callServices)) }
  func route(_ route: SystemMachine.Route) { give(system: .route(route)) }
  func resetMediaServices() { give(.audioChanged(isReset: true)) }
  func logOut() { give(.logOut) }
  func moveNetwork() { give(.pathChanged) }
  func microphone(_ permission: MicrophonePermission) { give(.microphone(permission)) }
  func pushToken(_ token: DevicePut.Push?) { give(.pushToken(token)) }
  func background() {
    give(system: .foreground(false))
    give(.foreground(false))
  }
  func mediaFails(_ call: CallID) { give(.media(call, .failed(.ice, "no pair of candidates works"))) }
  var isOnline: Bool { connection != nil }
  /// The app is opened by hand.
  func open() {
    if phone == nil { launched() }
    give(system: .foreground(true))
    give(.foreground(true))
  }
  func kill() {
    give(system: .exited)
    died()
  }
  /// What the screen shows.
  var shown: [CallID] { system.calls.filter { $0.value.phase != .ended }.map(\.key) }
}
