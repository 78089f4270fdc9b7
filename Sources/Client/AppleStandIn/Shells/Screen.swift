public import TrunklineBytes

/// What a person sees.
public struct Screen: Sendable, Equatable {
  public struct Call: Sendable, Equatable {
    public var id: Identifier
    /// The caller's name; without one, the handle.
    public var title: String
    public var phase: SystemMachine.Call.Phase
    public var isHeld: Bool
    public var isMuted: Bool
  }

  public var isLocked: Bool
  /// The call that rings; of several the first one (R26).
  public var incoming: Call?
  /// Calls that do not ring, in the order of their arrival.
  public var calls: [Call]
  /// The speaker button.
  public var isSpeakerOn: Bool
  public var isCellularCall: Bool

  init(_ machine: SystemMachine) {
    func shown(_ id: Identifier) -> Call? {
      guard let call = machine.calls[id], call.isShown else { return nil }
      let title = call.caller.name ?? call.caller.handle
      return Call(id: id, title: title, phase: call.phase, isHeld: call.isHeld, isMuted: call.isMuted)
    }
    incoming = machine.ordered { $0.phase == .ringing }.lazy.compactMap(shown).first
    calls = machine.ordered { $0.phase != .ringing && $0.phase != .ended }.compactMap(shown)
    (isLocked, isSpeakerOn, isCellularCall) = (machine.isLocked, machine.route == .speaker, machine.isCellularCall)
  }
}
