import AppProtocol
import AppSessions
import Bytes
import MediaSession
import SIPDialogs

/// One call of `CallMachine.handle`: the time, the settings and where the actions go.
struct Step {
  let now: Instant
  let configuration: Configuration
  let random: RandomSource
  let wallOffset: Int64
  var output = CallMachine.Output()
  /// What the present change means beyond its call; `CallMachine.change` acts on it.
  var outcomes: [CallOutcome] = []
  var statistics = CallStatistics()
  /// What legs of calls between users said; `CallMachine.connectDirectLegs` carries it.
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
  /// No device answered, and a rule says where it goes.
  case diverts(PlannedDiversion)
  /// The webhook's time is over.
  case routeTimedOut
  /// A leg that was replaced, or that failed: its slot in its trunk is free.
  case legLeft(TrunkLeg)
  /// Of a call whose number is called first.
  case numberAnswered
  case connected
  case ended
}
