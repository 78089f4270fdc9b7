import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// One call of `CallMachine.handle`: the time, the settings and the output for actions.
struct Step {
  let now: Instant
  let configuration: CallConfiguration
  let random: RandomSource
  let wallOffset: Int64
  var output = CallMachine.Output()
  /// Effects of the present change beyond its call; `CallMachine.change` performs them.
  var outcomes: [CallOutcome] = []
  var statistics = CallStatistics()
  /// Commands of legs of calls between users; `CallMachine.connectDirectLegs` delivers them.
  var directCommands: [UserAgent.Command] = []

  /// Milliseconds since 1970.
  func wall(_ instant: Instant) -> Int64 { instant.nanoseconds / 1_000_000 &+ wallOffset }
  var wallNow: Int64 { wall(now) }

  mutating func sip(_ command: UserAgent.Command) {
    if command.leg?.isDirect == true { directCommands.append(command) } else { output.actions.append(.sip(command)) }
  }
  mutating func media(_ command: MediaCommand) { output.actions.append(.media(command)) }
  mutating func app(_ command: SessionCommand) { output.actions.append(.app(command)) }
  mutating func send(_ message: ServerMessage, to device: DeviceKey, call: CallID) { app(.send(device, message, call: call)) }
  mutating func answer(_ request: RequestToken, _ answer: RequestAnswer) { app(.answer(request, answer)) }
  mutating func answer(_ question: QuestionID, _ answer: OperationAnswer) { output.actions.append(.answered(question, answer)) }
  mutating func refuse(_ request: RequestToken, _ code: ErrorCode, reason: EndReason? = nil, _ text: String? = nil) {
    app(.answer(request, .err(Failure(code, reason: reason, msg: text))))
  }
  mutating func measure(_ sample: Measurement) { output.actions.append(.measured(sample)) }
}

/// What an event of a call means for the call machine, in order.
enum CallOutcome {
  /// No device answered the call, and a rule diverts it.
  case diverts(PlannedDiversion)
  /// The webhook did not answer in time.
  case routeTimedOut
  /// A leg was replaced or failed: its slot of its trunk is free.
  case legLeft(TrunkLeg)
  /// The number of a call that calls the number first has answered.
  case numberAnswered
  case connected
  case ended
}
