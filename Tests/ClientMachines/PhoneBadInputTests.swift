import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// Inputs in an unexpected order or with extreme numbers: each has a defined end, and the next call works.
@Suite struct PhoneBadInputTests {
  private let first = PhoneRig.call(1)
  private let second = PhoneRig.call(2)

  /// Expects that a call rings, is answered and connects.
  private func expectCall(_ rig: inout PhoneRig, _ call: Identifier, _ location: SourceLocation = #_sourceLocation) {
    rig.ring(call)
    let tap = rig.perform(.answer(call))
    #expect(tap.written.contains("call.answer"), sourceLocation: location)
    rig.answer("call.answer")
    let done = rig.receive(.callConnected(CallConnected(at: 1, codec: "opus")), call)
    #expect(done.completions == [true], sourceLocation: location)
    #expect(rig.give(.audioActivated).audio == [.start], sourceLocation: location)
    let end = rig.receive(.callEnded(CallOver(.remoteHangup)), call)
    #expect(end.ends == [.remoteEnded] && end.audio == [.stop, .release], sourceLocation: location)
    rig.give(.audioDeactivated)
    #expect(rig.phone.liveCalls == [], sourceLocation: location)
  }

  @Test func `a gateway that sends connected, or progress, before the tap: no audio starts, and the tap still counts`() {
    var rig = PhoneRig()
    rig.logIn()
    rig.ring(first)
    rig.give(.audioActivated)
    for message in [
      ServerMessage.callProgress(CallProgress(.early, at: 0)), .callConnected(CallConnected(at: 1, codec: "opus")),
      .callProgress(CallProgress(.trying, at: 0)),
    ] {
      let done = rig.receive(message, first)
      #expect(done.audio == [] && rig.phone.info(of: first)?.state == .ringing, "\(message)")
    }
    rig.give(.audioDeactivated)
    #expect(rig.perform(.answer(first)).written.contains("call.answer"))
    rig.receive(.callEnded(CallOver(.remoteHangup)), first)
    expectCall(&rig, second)
  }

  @Test func `an offer with the largest number there is: a path change does not trap, and the next call works`() {
    var rig = PhoneRig()
    rig.logIn()
    rig.offer(first, gen: .max)
    rig.give(.reported(first, nil))
    rig.perform(.answer(first))
    rig.receive(.mediaRestart(MediaRestart(gen: 2)), first)
    rig.give(.pathChanged)
    _ = rig.welcome()
    rig.receive(.callCancel(CallOver(.callerCancelled)), first)
    expectCall(&rig, second)
  }

  @Test(arguments: [Int.max, Int.min, 0]) func `a heartbeat of centuries, or of none: a ping now and then, not all the time`(
    hb: Int
  ) {
    var rig = PhoneRig()
    rig.give(.start)
    rig.give(.token("a.b.c"))
    _ = rig.welcome(hb: hb)
    for _ in 0..<3 {
      rig.receive(.pong)
      guard let due = rig.phone.nextDeadline else { return #expect(Bool(false), "no ping is due") }
      #expect(due > rig.now && due <= rig.now + .seconds(600))
      rig.now = due
      #expect(rig.give(.timer).written == ["ping"])
    }
  }

  @Test func `a push token every second while the gateway does not answer: one question at a time, then the last token`() {
    var rig = PhoneRig()
    rig.logIn()
    var puts = 0
    for second in 0..<300 {
      puts += rig.give(.pushToken(.init(kind: .apnsVoIP, token: "\(second)"))).written.count { $0 == "device.put" }
      rig.receive(.pong)
      puts += rig.wait(.seconds(1)).written.count { $0 == "device.put" }
    }
    #expect(puts == 1 && rig.waiting("device.put") == 1)
    rig.answer("device.put", .ok(Success()))
    guard rig.requests.count == 1, case .devicePut(let put) = rig.requests[0].message else {
      return #expect(Bool(false), "\(rig.requests)")
    }
    #expect(put.push?.token == "299")
    let last = rig.answer("device.put", .ok(Success()))
    #expect(last.written == [] && last.names == ["registered"])
    expectCall(&rig, first)
  }

  @Test func `256 questions without an answer: an action that asks one more fails at once, and is not forgotten`() {
    var rig = PhoneRig()
    rig.logIn()
    rig.ring(first)
    rig.perform(.answer(first))
    rig.answer("call.answer")
    rig.receive(.callConnected(CallConnected(at: 1, codec: "opus")), first)
    // unnumbered, so that only the limit of open requests is reached
    for index in 0..<256 { rig.give(.foreground(index % 2 == 1)) }
    #expect(rig.perform(.hold(first, true)).completions == [false])
    #expect(rig.phone.info(of: first)?.isHeld == false)
    #expect(rig.perform(.end(first)).completions == [true] && rig.phone.liveCalls == [])
  }

  @Test func `dialled before there is a token: it goes out with the login`() {
    var rig = PhoneRig()
    rig.give(.start)
    rig.give(.dial(first, to: PhoneRig.handle))
    rig.perform(.start(first, PhoneRig.handle))
    #expect(rig.phone.info(of: first)?.state == .starting)
    let out = rig.give(.token("a.b.c"))
    guard out.names.contains("media") else { return #expect(Bool(false), "\(out.names)") }
    _ = rig.welcome()
    #expect(rig.give(.media(first, .described(sdp: "v=0", generation: 1))).written == ["call.start"])
  }

  @Test
  func
    `dialled while no token is to be had: it is asked for, 10 s after the last time, and the call ends as failed if it does not come`()
  {
    var rig = PhoneRig()
    rig.give(.start)
    rig.give(.tokenFailed)
    _ = rig.wait(.seconds(11))
    rig.give(.tokenFailed)
    _ = rig.wait(.seconds(8))
    rig.give(.dial(first, to: PhoneRig.handle))
    #expect(
      !rig.perform(.start(first, PhoneRig.handle)).names.contains("needsToken"), "it is 10 s since the last time in a second")
    #expect(rig.wait(.seconds(1)).names.contains("needsToken"), "otherwise in 20 s")
    rig.give(.tokenFailed)
    let out = rig.wait(.seconds(16))
    #expect(out.completions == [false] && out.ends == [.failed] && out.audio == [.release])
    #expect(rig.phone.info(of: first)?.reason == .unknown)
    rig.give(.token("a.b.c"))
    _ = rig.welcome()
    expectCall(&rig, second)
  }

  @Test func `a phone that has logged out asks for no token and waits for no time`() {
    var rig = PhoneRig()
    rig.give(.start)
    rig.give(.tokenFailed)
    rig.give(.logOut)
    #expect(!rig.wait(.seconds(60)).names.contains("needsToken"))
    #expect(rig.phone.nextDeadline == nil)
  }

  @Test func `an app ends a call whose report is under way: once it succeeds, the call leaves the screen`() {
    var rig = PhoneRig()
    rig.logIn()
    rig.give(.pushed(.init(call: first, caller: PhoneRig.handle, wake: "w"), mustReport: true))
    rig.give(.act(first, .end))
    #expect(rig.phone.liveCalls == [])
    #expect(rig.give(.reported(first, nil)).ends == [.failed])
    expectCall(&rig, second)
  }

  @Test func `a push for a call that is on its way out by a logout, or that was dialled: reported, and its end once`() {
    var rig = PhoneRig()
    rig.logIn()
    let push = PhoneMachine.Push(call: first, caller: PhoneRig.handle, wake: "w")
    rig.give(.pushed(push, mustReport: true))
    rig.give(.reported(first, nil))
    rig.give(.logOut)
    var out = rig.give(.pushed(push, mustReport: true))
    #expect(out.names.first == "report" && out.ends == [])
    out = rig.wait(.seconds(20))
    #expect(out.ends == [.failed])
    var other = PhoneRig()
    other.logIn()
    other.give(.dial(second, to: PhoneRig.handle))
    other.give(.requestRefused(.start(second, PhoneRig.handle)))
    out = other.give(.pushed(.init(call: second, caller: PhoneRig.handle, wake: "w"), mustReport: true))
    out += other.give(.reported(second, nil))
    #expect(out.ends == [.failed])
  }

  @Test func `pushed first without, then with the order to report: it is on the screen, and the watchdog ends it there`() {
    var rig = PhoneRig(isForeground: false)
    let push = PhoneMachine.Push(call: first, caller: PhoneRig.handle, wake: "w")
    rig.give(.pushed(push, mustReport: false))
    #expect(rig.give(.pushed(push, mustReport: true)).names.first == "report")
    rig.give(.reported(first, nil))
    #expect(rig.wait(.seconds(16)).ends == [.failed])
  }

  @Test func `the push's gateway cannot be reached: the call ends as failed, and the next push rings`() {
    var rig = PhoneRig(isForeground: false)
    rig.give(.start)
    rig.give(.tokenFailed)
    rig.give(.pushed(.init(call: first, caller: PhoneRig.handle, wake: "w", gateway: "no address"), mustReport: true))
    rig.give(.reported(first, nil))
    #expect(rig.phone.gateway == "no address")
    var ends: [CallEndedReason] = []
    for _ in 0..<30 {
      rig.give(.socket(.socketClosed(1006)))
      ends += rig.wait(.seconds(1)).ends
    }
    #expect(ends == [.failed] && rig.phone.info(of: first)?.reason == .unknown)
    let out = rig.give(.pushed(.init(call: second, caller: PhoneRig.handle, wake: "v", gateway: "wss://g"), mustReport: true))
    #expect(out.ends == [] && rig.phone.gateway == "wss://g" && rig.phone.liveCalls == [second])
    rig.give(.reported(second, nil))
    #expect(rig.welcome([snapshot(second)]).written.contains("call.ringing"))
  }

  @Test
  func `nodes that wake, point, refuse and vanish in any order: no trap, few sessions, no call left, and the next one works`() {
    for seed in 1...60 as ClosedRange<UInt64> {
      var random = SplitMix64(seed: seed)
      var rig = PhoneRig()
      rig.logIn()
      let nodes = (0..<12).map { "wss://n\($0)" }
      var sockets: Set<Int> = []
      for turn in 0..<200 {
        let call = PhoneRig.call(UInt64.random(in: 10...30, using: &random))
        let node = nodes[Int.random(in: 0..<12, using: &random)]
        let socket = Int.random(in: 0...12, using: &random)
        func receive(_ message: ServerMessage, call: Identifier? = nil, re: Identifier? = nil, seq: Int? = nil) {
          let frame = ServerFrame(message, re: re, seq: seq, call: call).encoded()
          rig.give(socket == 0 ? .socket(.frame(frame)) : .further(socket, .frame(frame)))
        }
        switch Int.random(in: 0..<9, using: &random) {
        case 0: receive(.callWake(CallWake(call: call, exp: 0, gw: node, wake: "w")), call: call)
        case 1: rig.give(.pushed(.init(call: call, caller: PhoneRig.handle, wake: "w", gateway: node), mustReport: turn % 2 == 0))
        case 2: rig.give(socket == 0 ? .socket(.socketOpened) : .further(socket, .socketOpened))
        case 3:
          var welcome = Welcome(
            sid: "s", resumeToken: "r", resumed: turn % 5 == 0, replayFrom: 1, time: 0, hb: 15_000, ice: [],
            calls: turn % 5 == 0 ? nil : turn % 2 == 0 ? [] : [snapshot(call)], node: node, url: node, spreadMs: 500)
          if turn % 3 == 0 { welcome.url = "no address" }
          receive(.welcome(welcome), re: PhoneRig.call(0))
        case 4: receive(.bye(Bye(code: 1012, url: node, afterMs: turn)))
        case 5:
          let code = [1000, 1006, 1012, 4001, 4002, 4009, 4003][Int.random(in: 0..<(socket == 0 ? 3 : 7), using: &random)]
          rig.give(socket == 0 ? .socket(.socketClosed(UInt16(code))) : .further(socket, .socketClosed(UInt16(code))))
        case 6: receive(.callGone(CallOver(.callerCancelled)), call: call, seq: Int.random(in: 1...3, using: &random))
        case 7: rig.give(.reported(call, nil))
        default: _ = rig.wait(.milliseconds(Int64.random(in: 0...4_000, using: &random)))
        }
        for case .further(let number, .connect) in rig.out { sockets.insert(number) }
        #expect(sockets.count { rig.phone.gateway(of: $0) != nil } <= 8)
      }
      _ = rig.wait(.seconds(120))
      #expect(rig.phone.liveCalls == [], "seed \(seed)")
      #expect(sockets.allSatisfy { rig.phone.gateway(of: $0) == nil }, "seed \(seed): a session without a call")
      _ = rig.give(.pathChanged)
      _ = rig.welcome()
      expectCall(&rig, first)
    }
  }

  private func snapshot(_ call: Identifier) -> CallSnapshot {
    CallSnapshot(
      call: call, dir: .incoming, state: .ringing, from: PhoneRig.handle, to: PhoneRig.handle, acct: "default", sdp: "v=0",
      gen: 1,
      at: 0)
  }

  @Test func `INC-4: what was given up is refused for this device once the gateway is reached: others ring on`() {
    var rig = PhoneRig(isForeground: false)
    rig.give(.pushed(.init(call: first, caller: PhoneRig.handle, wake: "w"), mustReport: true))
    rig.give(.reported(first, nil))
    #expect(rig.wait(.seconds(16)).ends == [.failed])
    _ = rig.welcome([snapshot(first)])
    guard case .callReject(let reject)? = rig.requests.last?.message else { return #expect(Bool(false), "\(rig.requests)") }
    #expect(reject == CallReject(scope: .device, reason: .mediaFailed))
  }

  @Test
  func `actions for calls that are unknown, over, or of the other direction: failed, and the end of one that is over is done`() {
    var rig = PhoneRig()
    rig.logIn()
    let (over, unknown) = (PhoneRig.call(3), PhoneRig.call(4))
    expectCall(&rig, over)
    for call in [over, unknown] {
      for (request, isDone) in [
        (SystemRequest.answer(call), false), (.hold(call, true), false), (.mute(call, true), false), (.digits(call, "1"), false),
        (.start(call, PhoneRig.handle), false), (.end(call), true),
      ] {
        let out = rig.perform(request)
        #expect(out.completions == [isDone] && out.count == 1, "\(request): \(out)")
      }
      for request in [
        SystemRequest.start(call, PhoneRig.handle), .answer(call), .end(call), .hold(call, true), .mute(call, true),
      ] {
        #expect(rig.give(.requestRefused(request)).isEmpty && rig.give(.timedOut(SystemActionID(99), request)).isEmpty)
      }
    }
    rig.ring(first)
    #expect(rig.perform(.start(first, PhoneRig.handle)).completions == [false], "it came in")
    rig.give(.dial(second, to: PhoneRig.handle))
    rig.perform(.start(second, PhoneRig.handle))
    #expect(rig.perform(.start(second, PhoneRig.handle)).completions == [false], "it is dialled already")
    #expect(rig.perform(.answer(second)).completions == [false], "it went out")
    rig.give(.media(second, .described(sdp: "v=0", generation: 1)))
    #expect(rig.answer("call.start").completions == [true], "the first action goes on")
  }

  @Test func `a call while the microphone is denied fails with that reason; the next one works once it is granted`() {
    var rig = PhoneRig()
    rig.logIn()
    rig.give(.microphone(.denied))
    let out = rig.give(.dial(first, to: PhoneRig.handle))
    #expect(out.states.last?.lacksMicrophone == true && out.states.last?.reason == .mediaFailed)
    #expect(!out.names.contains("request") && rig.phone.liveCalls == [])
    rig.give(.microphone(.granted))
    #expect(rig.give(.dial(second, to: PhoneRig.handle)).names.contains("request"))
  }

  /// `isReported`: the system answers the report before the gateway's offer arrives.
  @Test(arguments: [true, false]) func `a pushed call without a microphone: shown as it must be, ended, and others ring on`(
    isReported: Bool
  ) {
    var rig = PhoneRig()
    rig.logIn()
    rig.give(.microphone(.denied))
    let push = PhoneMachine.Push(call: first, caller: PhoneRig.handle, wake: "w")
    #expect(rig.give(.pushed(push, mustReport: true)).names.contains("report"))
    var ends = isReported ? rig.give(.reported(first, nil)).ends : []
    let out = rig.offer(first)
    #expect(
      out.written.contains("call.unavailable") && !out.written.contains("call.ringing") && !out.written.contains("call.end"))
    ends += out.ends
    if !isReported { ends += rig.give(.reported(first, nil)).ends }
    #expect(ends == [.failed] && rig.phone.liveCalls == [])
  }

  @Test func `more calls than the phone supports are refused, also where no system counts them`() {
    var rig = PhoneRig()
    rig.logIn()
    for call in [first, second] { #expect(rig.give(.dial(call, to: PhoneRig.handle)).names.contains("request")) }
    let out = rig.give(.dial(PhoneRig.call(3), to: PhoneRig.handle))
    #expect(!out.names.contains("request") && out.states.last?.refusal == .tooMany && out.states.last?.reason == .busy)
    #expect(rig.phone.liveCalls.count == 2)
  }

  @Test func `a device that refuses the second call's configuration while the first one has audio: audio stops`() {
    var rig = PhoneRig()
    rig.logIn()
    for call in [first, second] {
      rig.ring(call)
      rig.perform(.answer(call))
      rig.answer("call.answer")
      rig.receive(.callConnected(CallConnected(at: 1, codec: "opus")), call)
      if call == first {
        rig.perform(.hold(call, true))
        rig.answer("call.hold", .ok(Success()))
      }
    }
    #expect(rig.give(.audioActivated).audio == [.start])
    // the held one continues, without audio
    #expect(rig.give(.audioFailed(.configure)).audio == [.stop] && rig.phone.liveCalls == [first])
    #expect(rig.perform(.end(first)).audio == [.release])
    rig.give(.audioDeactivated)
    expectCall(&rig, PhoneRig.call(3))
  }

  @Test func `each end of a call has a reason`() {
    let ways: [(EndReason, (inout PhoneRig, Identifier) -> Void)] = [
      (.unknown, { $0.give(.requestRefused(.start($1, PhoneRig.handle))) }), (.localEnd, { $0.give(.act($1, .end)) }),
      (.auth, { rig, _ in rig.give(.socket(.socketClosed(4003))) }), (.unknown, { rig, _ in rig.give(.reset) }),
    ]
    for (reason, way) in ways {
      var rig = PhoneRig()
      rig.logIn()
      rig.give(.dial(first, to: PhoneRig.handle))
      way(&rig, first)
      #expect(rig.phone.info(of: first)?.reason == reason && rig.phone.liveCalls == [])
    }
    for (reason, refusal) in [(EndReason.dnd, ReportRefusal.doNotDisturb), (.blocked, .blocked)] {
      var rig = PhoneRig()
      rig.logIn()
      rig.give(.pushed(.init(call: first, caller: PhoneRig.handle, wake: "w"), mustReport: true))
      rig.give(.reported(first, refusal))
      #expect(rig.phone.info(of: first)?.reason == reason)
    }
  }
}
