import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// Calls that a program handles, over a stream.
@Suite struct StreamTests {
  private static let command = CallCommand.stream(StreamURL("wss://bot.example/call")!, .mulaw)
  private static let target = StreamTarget(StreamURL("wss://bot.example/call?key=secret")!)

  private func world(_ diversions: Diversions = Diversions(), numbers: [String] = []) -> Surroundings {
    Surroundings { _, routing in
      var rule = Routing.InboundRule(trunk: "carrier", target: .stream(Self.target))
      (rule.numbers, rule.diversions) = (numbers, diversions)
      routing.inbound.insert(rule, at: 0)
    }
  }
  private func opened(_ world: Surroundings) -> [StreamRequest] {
    world.streams.compactMap { if case .open(let request) = $0 { request } else { nil } }
  }
  private func closes(_ world: Surroundings) -> Int { world.streams.count { if case .close = $0 { true } else { false } } }

  @Test func `the trunk is answered when the stream is open and not before; then both talk; one record names the stream`() throws
  {
    let world = world()
    let leg = world.invite()
    let request = try #require(opened(world).first)
    #expect(
      request.target == Self.target && request.parameters["to"] == "+15551230001" && request.parameters["trunk"] == "carrier")
    #expect(!world.trunkReceived.contains("200") && world.machine.summaries.first?.state == .answering)
    world.feed(.stream(.opened(request.call)))
    #expect(world.trunkReceived.last == "200" && world.mediaReceived.contains("stream"))
    #expect(world.machine.summaries.first?.state == .connected)
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    world.feed(.media(.digit(try #require(world.session), from: .trunkToApp, digit: "7", durationMilliseconds: 100)))
    #expect(world.streams.contains { if case .digit(request.call, "7") = $0 { true } else { false } })
    world.feed(.sip(.byeReceived(leg, nil)))
    #expect(closes(world) == 1 && world.records.count == 1)
    let record = try #require(world.records.first)
    #expect(record.end.reason == .remoteHangup && record.stream == "wss://bot.example/call" && record.user == nil)
    #expect(record.connectedMs >= 0 && record.end.sip == 200)
  }

  @Test func `the journal entry is on disk before the trunk is answered`() throws {
    let world = world()
    world.journals = false
    _ = world.invite()
    let call = try #require(opened(world).first?.call)
    world.feed(.stream(.opened(call)))
    #expect(!world.trunkReceived.contains("200"))
    world.feed(.journalled(call))
    #expect(world.trunkReceived.last == "200")
  }

  @Test func `a stream that cannot be reached, or is not there in time, is a refusal with its cause`() throws {
    for isRefused in [true, false] {
      let world = world()
      _ = world.invite()
      let call = try #require(opened(world).first?.call)
      if isRefused { world.feed(.stream(.refused(call, "connection refused"))) } else { world.pass(.seconds(6)) }
      #expect(world.trunkReceived.last == "480 Q.850;cause=41", "\(world.trunkReceived)")
      let end = try #require(world.records.first?.end)
      #expect(end.detail == (isRefused ? "stream: connection refused" : "no stream"))
      #expect(closes(world) == (isRefused ? 0 : 1))
      // a late opening has no effect
      world.feed(.stream(.opened(call)))
      #expect(world.records.count == 1)
    }
  }

  @Test func `a rule for failed media sends the call on, to a user who rings`() throws {
    let world = world(Diversions([.mediaFailed: .init(.user("alice"))]))
    world.connect(Surroundings.phone)
    _ = world.invite()
    let call = try #require(opened(world).first?.call)
    world.feed(.stream(.refused(call, "it answered 503")))
    #expect(world.received[Surroundings.phone]?.last == "call.offer")
    #expect(world.machine.summaries.first?.state == .parked)
  }

  @Test(arguments: [true, false]) func `the peer's close ends the call with a BYE, a lost connection as a lost network`(
    isByPeer: Bool
  ) throws {
    let world = world()
    let leg = world.invite()
    let call = try #require(opened(world).first?.call)
    world.feed(.stream(.opened(call)))
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    world.feed(.stream(.ended(call, "closed", isByPeer: isByPeer)))
    #expect(world.trunkReceived.last == "BYE" && closes(world) == 0)
    #expect(world.records.first?.end.reason == (isByPeer ? .localEnd : .networkLost))
  }

  @Test func `a caller who gives up before the stream is there closes it`() throws {
    let world = world()
    let leg = world.invite()
    world.feed(.sip(.cancelled(leg, nil)))
    #expect(closes(world) == 1 && world.records.first?.end.reason == .callerCancelled)
  }

  @Test func `a row with numbers is for these alone`() throws {
    let world = world(numbers: ["+15557770000"])
    world.connect(Surroundings.phone)
    _ = world.invite()
    #expect(opened(world).isEmpty && world.received[Surroundings.phone]?.last == "call.offer")
  }

  @Test func `without room for media it is refused as any call`() {
    let world = world()
    world.mediaRefusal = "no ports"
    _ = world.invite()
    #expect(world.trunkReceived.last?.hasPrefix("503") == true && world.streams.isEmpty && world.records.isEmpty)
  }

  @Test func `a program gives a call that rings to a stream: the devices hear that it is over, once`() throws {
    let world = Surroundings { $1.streamHosts.hosts = [StreamHosts.Host("bot.example")!] }
    let (_, call) = try world.ringing([Surroundings.phone, Surroundings.tablet])
    #expect(world.command(call, Self.command) == nil)
    for device in [Surroundings.phone, Surroundings.tablet] {
      #expect(world.received[device]?.last == "call.cancel answeredElsewhere")
    }
    #expect(world.command(call, Self.command)?.code == .badState)
    world.feed(.stream(.opened(call)))
    #expect(world.trunkReceived.last == "200")
    let (_, other) = try Surroundings().connected()
    #expect(Surroundings().command(other, Self.command)?.code == .gone)
  }

  /// Requests a stream: the URL of the program, and the hosts and networks that the configuration allows its target.
  private func asked(_ url: String, hosts: [String], networks: [String] = [], route: String? = nil) throws -> StreamReach? {
    let world = Surroundings { _, routing in
      routing.streamHosts.hosts = hosts.compactMap { StreamHosts.Host($0) }
      routing.streamHosts.networks = networks.compactMap { IPNetwork($0) }
      if let url = route.flatMap({ StreamURL($0) }) {
        routing.inbound.append(.init(trunk: "other", target: .stream(StreamTarget(url, token: Redacted("secret")))))
      }
    }
    let (_, call) = try world.ringing([Surroundings.phone])
    let failure = world.command(call, .stream(try #require(StreamURL(url)), .mulaw))
    let target = opened(world).first?.target
    #expect(
      (failure == nil) == (target != nil) && (failure == nil || failure?.code == .forbidden), "\(String(describing: failure))")
    #expect(target?.token == nil, "a route's token is for the route's URL alone")
    return target?.reach
  }

  @Test(arguments: [
    "wss://bot.example:22/", "ws://127.0.0.1:18081/admin/shutdown?now=1", "ws://localhost/", "wss://other.example/",
    "wss://bot.example.attacker.example/", "wss://127.0.0.1/", "wss://[::1]/", "wss://bots.example/", "wss://notbots.example/",
    "ws://127.0.0.1:8081/", "wss://127.0.0.1:8080/",
  ]) func `a program sends a call to no host, port or scheme that the configuration does not name`(url: String) throws {
    #expect(try asked(url, hosts: ["bot.example", "*.bots.example", "ws://127.0.0.1:8080"]) == nil)
    #expect(try asked(url, hosts: []) == nil)
  }

  @Test func `hosts that the configuration names are allowed, also those of its routes, and lead to public addresses`() throws {
    #expect(try asked("wss://BOT.example./x", hosts: ["bot.example"]) == .named([]))
    #expect(try asked("wss://a.b.bots.example/", hosts: ["*.bots.example"]) == .named([]))
    #expect(try asked("wss://bot.example:8443/", hosts: ["bot.example:8443"]) == .named([]))
    #expect(try asked("wss://bot.example/other", hosts: [], route: "wss://bot.example/call") == .named([]))
    let inside = try #require(IPNetwork("10.0.0.0/8"))
    #expect(try asked("wss://bot.example/", hosts: ["bot.example"], networks: ["10.0.0.0/8"]) == .named([inside]))
    let here = try #require(try asked("ws://127.0.0.1:8080/", hosts: ["ws://127.0.0.1:8080"]))
    #expect(here.allows(.loopback) && !here.allows(IPAddress(127, 0, 0, 2)) && !here.allows(IPAddress(10, 0, 0, 1)))
    let local = try #require(try asked("ws://localhost:8080/", hosts: ["ws://localhost:8080"]))
    #expect(local.allows(.loopback) && local.allows(.loopback6) && !local.allows(IPAddress(169, 254, 169, 254)))
  }

  @Test func `a name that leads inside is not followed, unless the network is named; a route's own is`() throws {
    let named = StreamReach.named([try #require(IPNetwork("10.0.0.0/8"))])
    #expect(named.allows(IPAddress(10, 1, 2, 3)) && named.allows(IPAddress(8, 8, 8, 8)))
    #expect(!named.allows(.loopback) && !named.allows(IPAddress(192, 168, 0, 1)))
    #expect(!named.allows(try #require(IPAddress("::ffff:127.0.0.1"))) && StreamReach.anywhere.allows(.loopback))
    #expect(Self.target.reach == .anywhere)
  }

  @Test(arguments: [
    "", "bot.example/call", "https://bot.example", "ws://bot.example", "*", "a.*.example", "*.10.0.0.1", "bot.example:0",
  ])
  func `an invalid host of streams is refused`(text: String) { #expect(StreamHosts.Host(text) == nil) }

  @Test func `a stream's call can be recorded, and is not held or muted`() throws {
    let world = Surroundings { configuration, routing in
      configuration.recording = RecordingRules(when: .on)
      routing.inbound.insert(.init(trunk: "carrier", target: .stream(Self.target)), at: 0)
    }
    _ = world.invite()
    let call = try #require(opened(world).first?.call)
    world.feed(.stream(.opened(call)))
    #expect(world.recordings.count == 1)
    #expect(world.command(call, .hold(true))?.code == .badState && world.command(call, .mute(true))?.code == .badState)
  }

  @Test(
    arguments: [
      ("wss://bot.example", "bot.example", 443, "/"), ("wss://bot.example:8443/a/b?c=d", "bot.example", 8_443, "/a/b?c=d"),
      ("ws://127.0.0.1:9000/x", "127.0.0.1", 9_000, "/x"), ("ws://localhost", "localhost", 80, "/"),
      ("wss://[2001:db8::1]:444?q", "2001:db8::1", 444, "/?q"),
    ] as [(String, String, UInt16, String)])
  func `URLs of streams`(text: String, host: String, port: UInt16, path: String) throws {
    let url = try #require(StreamURL(text))
    #expect(url.host == host && url.port == port && url.path == path && url.description == text)
  }

  @Test(
    arguments: [
      "", "wss://", "https://bot.example", "ws://bot.example", "ws://192.0.2.1", "wss://user@bot.example", "wss://bot.example#a",
      "wss://bot.example:0", "wss://bot.example:99999", "wss://bot.example:", "wss://bot example", "wss://[::1", "wss://a]b",
      "wss://" + String(repeating: "a", count: 2_100),
    ])
  func `an invalid URL of a stream is refused`(text: String) { #expect(StreamURL(text) == nil) }
}
