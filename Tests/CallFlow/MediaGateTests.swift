import AppSessions
import CallFlow
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

private let phone = Surroundings.phone

@Suite struct MediaGateTests {
  @Test(
    arguments: [
      // warm, ageMs, timeoutMs, expected milliseconds from receipt
      (true, nil, nil, 10_000), (false, nil, nil, 20_000), (true, 4_000, nil, 6_000), (false, 4_000, nil, 16_000),
      (true, 0, 9_000, 4_000), (true, 0, 60_000, 10_000), (true, 0, 3_000, 0), (true, 30_000, nil, 0),
    ] as [(Bool, Int?, Int?, Int)])
  func `the deadline counts from the tap (ANS-1, ANS-5)`(isWarm: Bool, age: Int?, timeout: Int?, expected: Int) throws {
    let world = Surroundings()
    world.connect(phone)
    let leg = world.invite()
    let call = try #require(world.offeredCall())
    if isWarm { world.feed(.app(.offerAcked(phone, SessionID("phone"), call: call))) }
    world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP(), ageMs: age, timeoutMs: timeout)), call: call)
    if expected > 0 {
      world.pass(.milliseconds(expected - 1))
      #expect(world.received[phone]?.contains("call.ended mediaTimeout") == false)
      world.pass(.milliseconds(1))
    } else {
      world.pass(.zero)
    }
    #expect(world.received[phone]?.last == "call.ended mediaTimeout")
    #expect(world.trunkReceived == ["480 Q.850;cause=41"])
    world.expectRecord(.mediaTimeout, sip: 480)
    _ = leg
  }

  @Test func `media-fail after the tap is final (sequence 5, ANS-2)`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    world.notify(phone, .mediaFail(MediaFail(gen: 1, stage: .dtls, detail: "alert")), call: call)
    #expect(world.received[phone]?.last == "call.ended mediaFailed")
    #expect(world.trunkReceived == ["180", "480 Q.850;cause=41"])
    world.expectRecord(.mediaFailed, by: .app, sip: 480)
    #expect(world.records.first?.end.detail == "dtls alert")
  }

  @Test func `media-fail before the tap only switches warm-up off; a restart brings it back`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    _ = world.prepare(phone, call)
    world.notify(phone, .mediaFail(MediaFail(gen: 1, stage: .ice)), call: call)
    #expect(world.received[phone] == ["call.offer"])
    let answer = world.request(phone, .mediaRestart(MediaRestart(sdp: Surroundings.appSDP(setup: "actpass"), gen: 2)), call: call)
    guard case .mediaAnswer(let media) = answer else { throw Surroundings.Wrong(answer) }
    #expect(media.gen == 2)
    world.legs[phone] = world.lastRemote
    world.request(phone, .callAnswer(CallAnswer()), call: call)
    world.pair(phone)
    world.keys(phone)
    world.ready(phone, call, gen: 1)
    #expect(world.trunkReceived == ["180"])
    world.ready(phone, call, gen: 2)
    #expect(world.trunkReceived == ["180", "200"])
  }

  @Test func `a wrong fingerprint ends the call at once, whenever it shows`() throws {
    for failsFirst in [true, false] {
      let world = Surroundings()
      let (_, call) = try world.ringing()
      _ = world.prepare(phone, call)
      let session = try #require(world.session)
      let leg = try #require(world.legs[phone]).0
      let fail = { world.feed(.media(.appLegFailed(session, leg, .fingerprintMismatch))) }
      if failsFirst { fail() }
      #expect(world.isOK(world.request(phone, .callAnswer(CallAnswer()), call: call)))
      if !failsFirst { fail() }
      #expect(world.received[phone]?.last == "call.ended mediaFailed")
      world.expectRecord(.mediaFailed)
    }
  }

  @Test func `a failed handshake leaves 3 s for a restart`() throws {
    for restarts in [true, false] {
      let world = Surroundings()
      let (_, call) = try world.ringing()
      _ = world.prepare(phone, call)
      world.request(phone, .callAnswer(CallAnswer()), call: call)
      world.feed(.media(.appLegFailed(try #require(world.session), try #require(world.legs[phone]).0, .dtls("alert"))))
      world.pass(.milliseconds(2_900))
      if restarts {
        world.request(phone, .mediaRestart(MediaRestart(sdp: Surroundings.appSDP(setup: "actpass"), gen: 2)), call: call)
        world.legs[phone] = world.lastRemote
        world.pair(phone)
        world.keys(phone)
        world.ready(phone, call, gen: 2)
        #expect(world.trunkReceived == ["180", "200"])
      } else {
        world.pass(.milliseconds(100))
        world.expectRecord(.mediaFailed)
      }
    }
  }

  @Test func `a second prepare needs a new session, and starts anew`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    world.warm(phone, call)
    #expect(world.code(world.prepare(phone, call)) == .badState)
    #expect(world.code(world.prepare(phone, call, gen: 2)) == .staleGen)
    let old = try #require(world.legs[phone])
    // the page was loaded again
    world.feed(.app(.disconnected(phone, SessionID("phone"))))
    world.feed(.app(.ended(phone, SessionID("phone"))))
    world.connect(phone, "second")
    #expect(world.welcomes[SessionID("second")]?.calls.map(\.state) == [.ringing])
    #expect(world.isOK(world.prepare(phone, call, on: "second")))
    world.request(phone, .callAnswer(CallAnswer()), call: call, on: "second")
    // news of the first association
    let session = try #require(world.session)
    world.feed(.media(.nominated(session, old.0, generation: old.1.generation, remote: SocketAddress(.loopback, 1))))
    world.feed(.media(.keysInstalled(session, old.0, generation: old.1.generation, profile: "x")))
    world.ready(phone, call)
    #expect(world.trunkReceived == ["180"])
    world.pair(phone)
    world.keys(phone)
    #expect(world.trunkReceived == ["180", "200"])
  }

  @Test func `a device that is back and answers with its description has that one, not what it had prepared before`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    world.warm(phone, call)
    let old = try #require(world.legs[phone])
    world.feed(.app(.disconnected(phone, SessionID("phone"))))
    world.feed(.app(.ended(phone, SessionID("phone"))))
    world.connect(phone, "second")
    #expect(world.isOK(world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call, on: "second")))
    let new = try #require(world.lastRemote)
    #expect(new.1.generation == old.1.generation + 1 && world.trunkReceived == ["180"], "the media of before opens no gate")
    world.legs[phone] = new
    world.ready(phone, call)
    world.pair(phone)
    world.keys(phone)
    #expect(world.trunkReceived == ["180", "200"])
  }

  @Test func `a late offer connects with the ACK's answer`() throws {
    let world = Surroundings()
    let (leg, call) = try world.ringing(sdp: nil)
    world.warm(phone, call)
    world.request(phone, .callAnswer(CallAnswer()), call: call)
    #expect(world.trunkReceived == ["180", "200"])
    #expect(world.received[phone] == ["call.offer"])
    world.feed(.sip(.acknowledged(leg, sdp: Surroundings.trunkSDP(formats: "8"))))
    #expect(world.received[phone] == ["call.offer", "call.connected"])
  }

  @Test func `a late offer without a common codec in the ACK: BYE`() throws {
    for sdp in [nil, Surroundings.trunkSDP(formats: "18")] {
      let world = Surroundings()
      let (leg, call) = try world.ringing(sdp: nil)
      world.warm(phone, call)
      world.request(phone, .callAnswer(CallAnswer()), call: call)
      world.feed(.sip(.acknowledged(leg, sdp: sdp)))
      #expect(world.trunkReceived == ["180", "200", "BYE"])
      #expect(world.received[phone]?.last == "call.ended codec")
      world.expectRecord(.codec)
    }
  }

  @Test func `no ACK: the call is over`() throws {
    let world = Surroundings()
    let (leg, call) = try world.ringing()
    world.warm(phone, call)
    world.request(phone, .callAnswer(CallAnswer()), call: call)
    world.feed(.sip(.ackTimedOut(leg)))
    #expect(world.received[phone]?.last == "call.ended server")
    #expect(world.trunkReceived == ["180", "200"])
    world.expectRecord(.server, sip: 200)
  }

  @Test func `first words are kept until the device plays, at most 10 s`() throws {
    for (caps, announces) in [(Set(["media.active"]), true), (Set<String>(), false)] {
      let world = Surroundings()
      world.connect(phone, caps: caps)
      world.invite()
      let call = try #require(world.offeredCall())
      world.warm(phone, call)
      world.request(phone, .callAnswer(CallAnswer()), call: call)
      let keeps = world.actions.compactMap { if case .media(.connect(_, _, let keeps)) = $0 { keeps } else { nil } }
      #expect(keeps == [announces])
      func playouts() -> Int { world.actions.count { if case .media(.playoutActive) = $0 { true } else { false } } }
      world.pass(.milliseconds(9_999))
      #expect(playouts() == 0)
      world.pass(.milliseconds(1))
      #expect(playouts() == (announces ? 1 : 0))
      world.notify(phone, .mediaActive(MediaActive(capture: true, playout: true)), call: call)
      #expect(playouts() == (announces ? 1 : 0))
    }
  }

  @Test func `only the winner's audio is ever locked in (privacy)`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, Surroundings.tablet])
    world.warm(phone, call)
    world.warm(Surroundings.tablet, call)
    func locked() -> [AppLegID] { world.actions.compactMap { if case .media(.lockWinner(_, let leg)) = $0 { leg } else { nil } } }
    #expect(locked() == [])
    world.request(Surroundings.tablet, .callAnswer(CallAnswer()), call: call)
    #expect(locked() == [try #require(world.legs[Surroundings.tablet]).0])
  }

  @Test func `whatever an app says of its Opus the call stands, and the media thread is told what is asked for`() throws {
    let asked: [(String?, OpusPreferences)] = [
      ("usedtx=1", OpusPreferences(acceptsPauses: true)), ("cbr=1", OpusPreferences(isConstantRate: true)),
      ("maxaveragebitrate=6000", OpusPreferences(maximumBitrate: 6_000)), ("maxptime=10", OpusPreferences()),
      ("stereo=1", OpusPreferences()),
      ("useinbandfec=0", OpusPreferences(acceptsRepair: false)), (nil, OpusPreferences()), ("", OpusPreferences()),
      (";;=;cbr", OpusPreferences()),
      (
        "cbr=1;stereo=1;usedtx=1;maxaveragebitrate=6000",
        OpusPreferences(acceptsPauses: true, maximumBitrate: 6_000, isConstantRate: true)
      ),
    ]
    for (fmtp, wishes) in asked {
      let world = Surroundings()
      let (leg, call) = try world.ringing()
      let sdp = Surroundings.appSDP() + (fmtp.map { "a=fmtp:111 \($0)\r\n" } ?? "")
      #expect(world.isOK(world.request(phone, .callPrepare(CallPrepare(sdp: sdp)), call: call)), "\(fmtp ?? "none")")
      let remote = try #require(world.lastRemote)
      #expect(remote.1.opus == wishes, "\(fmtp ?? "none")")
      world.legs[phone] = remote
      world.pair(phone)
      world.keys(phone)
      world.ready(phone, call)
      world.request(phone, .callAnswer(CallAnswer()), call: call)
      #expect(world.trunkReceived == ["180", "200"], "\(fmtp ?? "none")")
      world.feed(.sip(.acknowledged(leg, sdp: nil)))
      #expect(world.mediaReceived.contains("connect"))
    }
  }
}
