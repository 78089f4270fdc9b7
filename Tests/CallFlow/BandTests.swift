import AppSessions
import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSIPDialogs

private let phone = Surroundings.phone
private let call = Identifier(high: 5, low: 5)

/// Which band apps and media threads are given for a call, and which one its record states (docs/reference/protocol.md).
@Suite struct BandTests {
  private static let narrow = "maxplaybackrate=8000;maxaveragebitrate=28000;sprop-maxcapturerate=8000;"
  private static let wide = "maxaveragebitrate=40000;sprop-maxcapturerate=16000;"

  /// The description's Opus parameters beyond our own ones; nil without Opus.
  private func limits(_ sdp: String?) -> String? {
    let start = "a=fmtp:111 minptime=10;useinbandfec=1;"
    let line = sdp?.split(separator: "\r\n").first { $0.hasPrefix(start) }
    return line.map { String($0.dropFirst(start.count).dropLast("stereo=0".count)) }
  }
  private func offer(_ world: Surroundings) -> String? {
    world.messages[phone, default: []].compactMap { if case .callOffer(let offer) = $0 { offer.sdp } else { nil } }.first
  }
  /// A trunk for each list, in the order of the route.
  private func world(_ codecs: [AudioEncoding]...) -> Surroundings { world(codecs) }
  private func world(_ codecs: [[AudioEncoding]]) -> Surroundings {
    Surroundings { _, routing in
      routing.trunks = codecs.map { Routing.Trunk(name: "carrier", peer: Surroundings.peer, codecs: $0) }
      for index in codecs.indices.dropFirst() { routing.trunks[index].name = "carrier-\(index)" }
      let choices = routing.trunks.enumerated().map { Routing.TrunkChoice(trunk: $1.name, priority: $0 + 1) }
      routing.outbound = [.init(prefix: "+", choices: choices)]
    }
  }
  private func trunk(_ world: Surroundings) -> TrunkLegParameters? {
    world.actions.compactMap { if case .media(.setTrunk(_, let parameters)) = $0 { parameters } else { nil } }.last
  }
  private static func opusSDP(_ fmtp: String = "") -> String {
    Surroundings.trunkSDP(formats: "111").replacing(
      "a=sendrecv", with: "a=rtpmap:111 opus/48000/2\r\na=fmtp:111 \(fmtp)\r\na=sendrecv")
  }
  private static let g722 = Surroundings.trunkSDP(formats: "9 0 101")

  @Test(arguments: [
    (Surroundings.trunkSDP(), narrow), (g722, wide), (opusSDP(), ""),
    (opusSDP("maxplaybackrate=16000;maxaveragebitrate=20000"), "maxplaybackrate=16000;maxaveragebitrate=20000;"),
    (nil, wide),
  ])
  func `an incoming call offers apps what its trunk carries; relayed Opus what the trunk asks for, a late offer the widest`(
    sdp: String?, expected: String
  ) throws {
    let world = world([.opus, .g722, .pcmu])
    _ = try world.ringing(sdp: sdp)
    #expect(limits(offer(world)) == expected)
  }

  @Test func `the bitrates are the configuration's`() throws {
    for (sdp, expected) in [(Surroundings.trunkSDP(), "maxaveragebitrate=20000;"), (Self.g722, "maxaveragebitrate=50000;")] {
      let world = Surroundings { configuration, routing in
        (configuration.opusBitrate, configuration.opusBitrateWide) = (20_000, 50_000)
        routing.trunks[0].codecs = [.g722, .pcmu]
      }
      _ = try world.ringing(sdp: sdp)
      #expect(limits(offer(world))?.contains(expected) == true)
    }
  }

  @Test(
    arguments: [
      ([[.pcmu, .pcma]], narrow), ([[.pcmu, .g722]], wide), ([[.l16, .opus]], wide), ([[.pcmu], [.g722]], wide),
      ([[.l16]], narrow),
    ] as [([[AudioEncoding]], String)])
  func `an outgoing call is answered with the widest that the trunks of its route may choose`(
    codecs: [[AudioEncoding]], expected: String
  ) throws {
    #expect(limits(started(world(codecs))) == expected)
  }

  private func started(_ world: Surroundings) -> String? {
    world.connect(phone)
    let start = CallStart(to: Handle(k: .phone, h: "+15557654321"), sdp: Surroundings.appSDP(setup: "actpass"))
    guard case .ok(let success) = world.request(phone, .callStart(start), call: call) else { return nil }
    world.legs[phone] = world.lastRemote
    return success.sdp
  }

  @Test func `if a trunk answers narrower, the app learns it at its next restart, and media at once`() throws {
    let world = world([.g722, .pcmu])
    #expect(limits(started(world)) == Self.wide)
    world.openOutgoingGate(call)
    world.feed(.sip(.answered(try #require(world.outgoingLeg), sdp: Surroundings.trunkSDP())))
    #expect(trunk(world)?.encoding == .pcmu && world.received[phone]?.last == "call.connected")
    let restart = MediaRestart(sdp: Surroundings.appSDP(setup: "actpass"), gen: 2)
    guard case .mediaAnswer(let answer) = world.request(phone, .mediaRestart(restart), call: call) else {
      return #expect(Bool(false), "no media.answer")
    }
    #expect(limits(answer.sdp) == Self.narrow)
  }

  @Test(arguments: [("maxplaybackrate=8000", 8_000), ("maxplaybackrate=0", nil), ("maxplaybackrate=x;stereo=1", nil), ("", nil)])
  func `an app that plays 8 kHz on a wide trunk is narrow; nonsense is wide`(fmtp: String, rate: Int?) throws {
    let world = world([.g722])
    let (_, call) = try world.ringing(sdp: Self.g722)
    let sdp = Surroundings.appSDP() + "a=fmtp:111 \(fmtp)\r\n"
    #expect(world.isOK(world.request(phone, .callPrepare(CallPrepare(sdp: sdp)), call: call)))
    let opus = try #require(world.lastRemote).1.opus
    #expect(opus.maximumPlaybackRateHz == rate && opus.band == (rate == nil ? .wideband : .narrowband))
  }

  @Test func `media is told what a trunk asks of our Opus, and what its next offer changes of it`() throws {
    let world = world([.opus])
    let (leg, call) = try world.ringing(
      sdp: Self.opusSDP("usedtx=1;useinbandfec=0;cbr=1;maxplaybackrate=8000;maxaveragebitrate=16000"))
    var wanted = OpusPreferences(acceptsPauses: true, acceptsRepair: false, maximumBitrate: 16_000, isConstantRate: true)
    wanted.maximumPlaybackRateHz = 8_000
    #expect(trunk(world)?.opus == wanted)
    world.warm(phone, call)
    world.request(phone, .callAnswer(CallAnswer()), call: call)
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    world.feed(.sip(.reinviteReceived(leg, sdp: Self.opusSDP("maxplaybackrate=-1;maxaveragebitrate=99999999999999999999"))))
    #expect(trunk(world)?.opus == OpusPreferences())
  }

  @Test(arguments: [(AudioBand.wideband, CallRecord.Band.wide), (.narrowband, .narrow), (nil, nil)])
  func `the record says the band that media had last`(band: AudioBand?, expected: CallRecord.Band?) throws {
    let world = Surroundings()
    world.statistics.band = band
    let (leg, _) = try world.connected()
    world.feed(.sip(.byeReceived(leg, nil)))
    #expect(try #require(world.records.first).band == expected)
  }
}
