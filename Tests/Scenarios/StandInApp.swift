import AppleStandIn
import Dispatch
import Foundation
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineCallKit
import TrunklineClientMachines

/// An app of the SDK's adapter and machine on a `StandInPhone`, with a gateway that accepts everything: for what only the adapter
/// does, such as the one provider, the queue of its delegates and the audio session's category. Time is the stand-in's; no timer
/// of the machine is needed.
final class StandInApp: @unchecked Sendable {
  // Unchecked: touched on its queue only, and read by a test when the queue is quiet.
  let system: CallKitSystem
  private let queue = DispatchQueue(label: "app")
  private var machine: PhoneMachine
  private var waiting: [PhoneMachine.Input] = []
  private var isRunning = false
  private var sequence = 0
  private var calls: [(id: Identifier, caller: Handle)] = []
  /// Calls that this session was notified of.
  private var offered: Set<Identifier> = []

  /// The messages that the gateway received.
  private(set) var received: [ClientMessage] = []
  private(set) var audio: [AudioRequest] = []
  private(set) var media: [ClientCall.MediaRequest] = []
  private(set) var infos: [Identifier: CallInfo] = [:]
  private(set) var isLoggedOut = false

  init(_ settings: CallKitSystem.Settings = .init()) {
    system = CallKitSystem(settings)
    var configuration = PhoneMachine.Configuration(device: Hello.Device(id: "cell", platform: "ios"))
    configuration.isForeground = false
    machine = PhoneMachine(configuration, random: RandomSource { UInt64.random(in: .min ... .max) })
    system.attach(to: queue) { [weak self] event in self?.take(event) }
    queue.async { [self] in give(.start) }
  }

  func end(_ call: Identifier, _ reason: EndReason) { queue.sync { tell(.callEnded(CallOver(reason)), call) } }
  func act(_ call: Identifier, _ action: PhoneMachine.CallAction) { queue.sync { give(.act(call, action)) } }
  func logOut() { queue.sync { give(.logOut) } }
  func received(_ type: ClientMessageType) -> Int { received.count { $0.type == type } }

  private func take(_ event: CallSystemEvent) {
    switch event {
    case .pushed(let payload, let mustReport):
      let push = PushPayload(json: payload)
      if let push { calls.append((push.call, push.caller)) }
      give(
        .pushed(
          push.map { .init(call: $0.call, caller: $0.caller, wake: $0.wake.exposed, gateway: $0.gateway) },
          mustReport: mustReport))
    case .pushToken(let token): give(.pushToken(token))
    case .reported(let call, let refusal): give(.reported(call, refusal))
    case .perform(let id, let request, let timeout): give(.perform(id, request, timeout: timeout))
    case .timedOut(let id, let request): give(.timedOut(id, request))
    case .requestRefused(let request): give(.requestRefused(request))
    case .audioActivated: give(.audioActivated)
    case .audioDeactivated: give(.audioDeactivated)
    case .audioChanged(let isReset): give(.audioChanged(isReset: isReset))
    case .noted: break
    case .reset: give(.reset)
    case .foreground(let isOn): give(.foreground(isOn))
    case .microphone(let permission): give(.microphone(permission))
    case .translates(let call, let translate): give(.act(call, .translate(translate)))
    case .unsupported: break
    }
  }

  private func give(_ input: PhoneMachine.Input) {
    waiting.append(input)
    guard !isRunning else { return }
    isRunning = true
    defer { isRunning = false }
    while !waiting.isEmpty {
      var actions: [PhoneMachine.Action] = []
      machine.handle(waiting.removeFirst(), at: Instant(nanoseconds: 1), into: &actions)
      for action in actions { perform(action) }
    }
  }

  private func perform(_ action: PhoneMachine.Action) {
    switch action {
    case .report(let call, let caller, let isVideo): system.perform(.report(call, caller, isVideo: isVideo))
    case .updated(let call, let caller, let capabilities): system.perform(.update(call, caller, capabilities))
    case .reportEnded(let call, let reason): system.perform(.reportEnded(call, reason))
    case .reportConnecting(let call): system.perform(.reportConnecting(call))
    case .reportConnected(let call, let at): system.perform(.reportConnected(call, at: at))
    case .request(let request): system.perform(.request(request))
    case .complete(let id, let isDone): system.perform(.complete(id, isDone))
    case .socket(.connect): give(.socket(.socketOpened))
    case .socket(.write(let bytes)): answer(bytes)
    case .socket: break
    case .media(let call, let order):
      media.append(order)
      if case .answer(_, let generation) = order { prepared(call, generation) }
    case .audio(let order):
      audio.append(order)
      if order == .configure { system.perform(.configureAudio) }
      if order == .start { give(.audioRuns(.running)) }
    case .needsToken: give(.token("token"))
    case .changed(let info): infos[info.id] = info
    case .loggedOut: isLoggedOut = true
    case .further, .relays, .post, .listen, .mix, .state, .presentInApp, .registered, .digit, .transferred, .directory, .read,
      .historyChanged, .tested, .tokenStale:
      break
    }
  }

  private func prepared(_ call: Identifier, _ generation: Int) {
    give(.media(call, .described(sdp: "v=0", generation: generation)))
    give(.media(call, .connected(generation: generation, pair: nil, roundTripMilliseconds: nil, profile: "")))
  }

  // MARK: the gateway

  private func answer(_ bytes: [UInt8]) {
    guard let frame = try? ClientFrame(decoding: bytes), case .message(let message) = frame.body else { return }
    received.append(message)
    guard let id = frame.id else { return }
    guard case .hello = message else {
      // news of calls comes before the answer to any request
      if case .deviceState = message { offer() }
      give(.socket(.frame(ServerFrame(.ok(Success()), re: id, ack: frame.seq).encoded())))
      switch (message, frame.call) {
      case (.callAnswer, let call?): tell(.callConnected(CallConnected(at: 1, codec: "opus")), call)
      case (.callEnd, let call?), (.callReject, let call?): calls.removeAll { $0.id == call }
      default: break
      }
      return
    }
    sequence = 0
    offered = Set(calls.map(\.id))
    let rows = calls.map {
      CallSnapshot(
        call: $0.id, dir: .incoming, state: .ringing, from: $0.caller, to: Handle(k: .phone, h: "+1"), acct: "default",
        sdp: "v=0", gen: 1, at: 0)
    }
    let welcome = Welcome(
      sid: "s", resumeToken: "r", resumed: false, replayFrom: 1, time: 0, hb: 15_000, ice: [], calls: rows)
    give(.socket(.frame(ServerFrame(.welcome(welcome), re: id).encoded())))
  }

  private func offer() {
    for call in calls where offered.insert(call.id).inserted {
      tell(
        .callOffer(CallOffer(from: call.caller, to: Handle(k: .phone, h: "+1"), acct: "default", sdp: "v=0", gen: 1, exp: 0)),
        call.id)
    }
  }

  private func tell(_ message: ServerMessage, _ call: Identifier) {
    sequence += 1
    give(.socket(.frame(ServerFrame(message, seq: sequence, call: call).encoded())))
    if case .callEnded = message { calls.removeAll { $0.id == call } }
  }
}
