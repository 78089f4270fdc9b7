import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineMediaSession
import TrunklineSIPDialogs

/// Commands of operators' programs for live calls. Each acts like the request of the device that has the call, and is refused for
/// the same reasons.
extension CallMachine {
  /// Performs a command. Nil: it is done, or under way.
  mutating func perform(_ command: CallCommand, _ id: CallID, _ step: inout Step) -> Failure? {
    guard let call = calls[id], call.isLive else { return Failure(.gone, msg: "no such call") }
    var refusal: Failure?
    if call.isTest {
      guard case .hangUp = command else { return Self.notInTest }
    }
    switch command {
    case .hangUp(let reason): change(id, &step) { refusal = $0.hangUp(reason, &$1) }
    case .hold(let isOn): change(id, &step) { refusal = $0.holdByOperator(isOn, &$1) }
    case .mute(let isOn): change(id, &step) { refusal = $0.muteByOperator(isOn, &$1) }
    case .digits(let digits): change(id, &step) { refusal = $0.sendDigitsByOperator(digits, &$1) }
    case .play(let audio): change(id, &step) { refusal = $0.playByOperator(audio, &$1) }
    case .stream(let url, let format): refusal = stream(id, to: url, as: format, &step)
    case .record(let isOn): change(id, &step) { refusal = $0.setRecording(isOn, &$1) }
    case .transfer(let transfer): refusal = transferByOperator(id, transfer, &step)
    case .transferToUser(let user):
      guard let found = routing.user(user) else { return Failure(.notFound, msg: "no such user") }
      guard let number = found.numbers.first else { return Failure(.notFound, msg: "this user has no number") }
      refusal = transferByOperator(id, CallTransfer(target: Handle(k: .phone, h: number)), &step)
    }
    return refusal
  }

  private mutating func transferByOperator(_ id: CallID, _ transfer: CallTransfer, _ step: inout Step) -> Failure? {
    guard let winner = calls[id]?.winner else { return Call.noDeviceHasCall }
    if case .err(let failure) = self.transfer(id, transfer, by: winner, &step) { return failure }
    return nil
  }
}

extension Call {
  static let noDeviceHasCall = Failure(.badState, msg: "no device has the call")

  /// An unanswered incoming call gets a final response that states the reason; all other calls get CANCEL or BYE only.
  mutating func hangUp(_ reason: HangUpReason?, _ step: inout Step) -> Failure? {
    guard let reason else {
      hangUp(&step)
      return nil
    }
    guard reason == .localEnd || (trunkLeg.phase == .invited && !trunkLeg.id.isOutbound) else {
      return Failure(.badState, msg: "this reason needs an unanswered incoming call; localEnd ends every call")
    }
    end(reason.reason, by: .gateway, detail: "hung up by an operator", &step)
    return nil
  }

  /// The device that has the call is notified, so that its screen follows.
  mutating func holdByOperator(_ isOn: Bool, _ step: inout Step) -> Failure? {
    guard let winner else { return Self.noDeviceHasCall }
    if case .err(let failure) = hold(CallHold(on: isOn), from: winner, &step) { return failure }
    step.send(.callHeld(CallHeld(by: .gateway, on: isOn)), to: winner, call: id)
    return nil
  }

  mutating func muteByOperator(_ isOn: Bool, _ step: inout Step) -> Failure? {
    guard let winner else { return Self.noDeviceHasCall }
    if case .err(let failure) = mute(CallMute(on: isOn), &step) { return failure }
    step.send(.callMuted(CallMuted(on: isOn)), to: winner, call: id)
    return nil
  }

  mutating func playByOperator(_ file: Announcement?, _ step: inout Step) -> Failure? {
    guard winner != nil, state == .connected else { return Self.noDeviceHasCall }
    if audio.play(file) { step.media(.play(session, file)) }
    return nil
  }

  mutating func sendDigitsByOperator(_ digits: CallDTMF, _ step: inout Step) -> Failure? {
    guard winner != nil else { return Self.noDeviceHasCall }
    if case .err(let failure) = sendDigits(digits, &step) { return failure }
    return nil
  }
}
