import Foundation

/// What a person and the network do, and what the person sees.
extension StandInPhone {
  /// A button; it applies to the call that rings, else to the newest.
  public enum Button: Sendable, Equatable {
    case answer, decline, end, holdAndAnswer, endAndAnswer, headset
    case hold(Bool), mute(Bool), speaker(Bool), digits(String)
  }

  /// A button that is not on the screen does nothing.
  public func tap(_ button: Button) { if let tap = screen.tap(button) { give(.tap(tap)) } }
  /// A button of one call of several.
  public func tap(exactly tap: SystemMachine.Tap) { give(.tap(tap)) }

  public func lock(_ isOn: Bool = true) { give(.locked(isOn)) }
  public func unlock() { give(.locked(false)) }
  public func background() { give(.foreground(false)) }
  public func foreground() { give(.foreground(true)) }
  public func cellularCall(_ isOn: Bool) { give(.cellular(isOn)) }
  public func route(_ route: SystemMachine.Route) { give(.route(route)) }
  public func microphone(_ permission: SystemMachine.Permission) { give(.microphone(permission)) }
  public func tapRecent(_ recent: Recent) { give(.tapRecent(recent.caller)) }
  /// The phone is switched off and on: it is locked, the keychain is closed, the app does not run.
  public func restart() { give(.restarted) }
  /// A daemon of the system crashes: `providerDidReset`.
  public func crash(_ cause: SystemMachine.ResetCause) { give(.systemReset(cause)) }

  /// `payload`: the text of a JSON object.
  public func push(_ payload: String) { change { $0.push(payload, at: $1) } }
  /// `payload`: property-list values.
  public func push(_ payload: [String: Any]) {
    let isValid = JSONSerialization.isValidJSONObject(payload)
    let data = isValid ? try? JSONSerialization.data(withJSONObject: payload) : nil
    push(String(decoding: data ?? Data("{}".utf8), as: UTF8.self))
  }

  // MARK: the person's view

  public var screen: Screen { access.withLock { model.screen } }
  /// `R1: …`, in the order of their occurrence.
  public var violations: [String] { access.withLock { model.violations } }
  public var recents: [Recent] { access.withLock { model.recents } }
  /// One line per event: `LogLine`.
  public var log: [String] { access.withLock { model.log.map(\.description) } }
  /// The log as a file that `TraceCheck` reads, with its header.
  public var trace: String { ([TraceHeader(.standIn).line.description] + log).map { $0 + "\n" }.joined() }
  public var isRunning: Bool { access.withLock { model.machine.isRunning } }
  public var isAudioActive: Bool { access.withLock { model.machine.isAudioActive } }
}

extension Screen {
  /// The tap on a button of this screen; nil if the screen does not show it.
  public func tap(_ button: StandInPhone.Button) -> SystemMachine.Tap? {
    let newest = calls.last?.id
    return switch button {
    case .answer: incoming.map { .answer($0.id) }
    case .decline: incoming.map { .end($0.id) }
    case .end: (calls.last { !$0.isHeld }?.id ?? newest ?? incoming?.id).map { .end($0) }
    case .holdAndAnswer: incoming.map { .holdAndAnswer($0.id) }
    case .endAndAnswer: incoming.map { .endAndAnswer($0.id) }
    case .headset: .headset
    case .hold(let isOn): newest.map { .hold($0, isOn) }
    case .mute(let isOn): newest.map { .mute($0, isOn) }
    case .speaker(let isOn): .speaker(isOn)
    case .digits(let digits): newest.map { .digits($0, digits) }
    }
  }
}
