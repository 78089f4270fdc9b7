import Testing
import TrunklineBytes
import TrunklineSIPDialogs

@testable import Trunking

/// RFC 3263 §4 and RFC 2782.
@Suite struct LocationTests {
  private func naptr(_ order: UInt16, _ preference: UInt16, _ service: String, _ replacement: String) -> NAPTRRecord {
    NAPTRRecord(order: order, preference: preference, flags: "s", service: service, replacement: replacement)
  }
  private func srv(_ priority: UInt16, _ weight: UInt16, _ port: UInt16, _ target: String) -> SRVRecord {
    SRVRecord(priority: priority, weight: weight, port: port, target: target)
  }

  @Test func `an address asks nothing; its port and transport are as written or usual`() {
    let plain = World([trunk("192.0.2.1")])
    #expect(plain.targets() == ["udp 192.0.2.1:5060"] && plain.asked.isEmpty)
    #expect(World([trunk("192.0.2.1", port: 5070, transport: .tcp)]).targets() == ["tcp 192.0.2.1:5070"])
    #expect(World([trunk("2001:db8::1", isSecure: true)]).targets() == ["tls [2001:db8::1]:5061"])
  }

  @Test func `a port asks for addresses alone`() {
    let world = World(
      [trunk(port: 5080)], Zone(a: ["carrier.example": ["192.0.2.1", "192.0.2.2"]], aaaa: ["carrier.example": ["2001:db8::1"]]))
    #expect(world.targets() == ["udp 192.0.2.1:5080", "udp 192.0.2.2:5080", "udp [2001:db8::1]:5080"])
    #expect(world.asked.map(\.kind) == [.a, .aaaa])
  }

  @Test func `a transport asks for its SRV, and for addresses where there is none`() {
    let zone = Zone(
      srv: ["_sip._tcp.carrier.example": [srv(1, 1, 5066, "a.example")]],
      a: ["a.example": ["192.0.2.1"], "carrier.example": ["192.0.2.9"]])
    let world = World([trunk(transport: .tcp)], zone)
    #expect(world.targets() == ["tcp 192.0.2.1:5066"] && !world.asked.contains { $0.kind == .naptr })
    #expect(World([trunk(transport: .udp)], zone).targets() == ["udp 192.0.2.9:5060"])
  }

  @Test func `NAPTR chooses the services in its order, of those that we and the URI can speak`() {
    let zone = Zone(
      naptr: [
        "carrier.example": [
          naptr(50, 50, "SIPS+D2T", "_sips._tcp.carrier.example"), naptr(20, 50, "SIP+D2U", "_sip._udp.carrier.example"),
          naptr(20, 10, "SIP+D2T", "_sip._tcp.carrier.example"), naptr(1, 1, "E2U+sip", "x"),
        ]
      ],
      srv: [
        "_sip._udp.carrier.example": [srv(1, 1, 5060, "a.example")], "_sip._tcp.carrier.example": [srv(1, 1, 5060, "a.example")],
        "_sips._tcp.carrier.example": [srv(1, 1, 5061, "a.example")],
      ], a: ["a.example": ["192.0.2.1"]])
    #expect(World([trunk()], zone).targets() == ["tcp 192.0.2.1:5060", "udp 192.0.2.1:5060", "tls 192.0.2.1:5061"])
    #expect(World([trunk()], zone, transports: [.udp]).targets() == ["udp 192.0.2.1:5060"])
    #expect(World([trunk(isSecure: true)], zone).targets() == ["tls 192.0.2.1:5061"])
  }

  @Test func `without NAPTR the SRV of what we speak, UDP first; without those addresses by UDP`() {
    let zone = Zone(
      srv: [
        "_sip._udp.carrier.example": [srv(1, 1, 5070, "a.example")], "_sips._tcp.carrier.example": [srv(1, 1, 5061, "a.example")],
      ],
      a: ["a.example": ["192.0.2.1"]])
    #expect(World([trunk()], zone).targets() == ["udp 192.0.2.1:5070", "tls 192.0.2.1:5061"])
    #expect(World([trunk()], Zone(a: ["carrier.example": ["192.0.2.5"]])).targets() == ["udp 192.0.2.5:5060"])
    // ".": the service is decidedly not available (RFC 2782)
    let refused = Zone(srv: ["_sip._udp.carrier.example": [srv(0, 0, 0, ".")]], a: ["carrier.example": ["192.0.2.5"]])
    #expect(World([trunk(transport: .udp)], refused).targets().isEmpty)
  }

  @Test func `priorities go first, weights share within one priority`() {
    let zone = Zone(
      srv: [
        "_sip._udp.carrier.example": [
          srv(20, 100, 5060, "c.example"), srv(10, 60, 5060, "a.example"), srv(10, 20, 5060, "b.example"),
          srv(10, 0, 5060, "z.example"),
        ]
      ],
      a: ["a.example": ["192.0.2.1"], "b.example": ["192.0.2.2"], "c.example": ["192.0.2.3"], "z.example": ["192.0.2.4"]])
    let world = World([trunk(transport: .udp)], zone, seed: 7)
    var first: [String: Int] = [:]
    for _ in 0..<4_000 {
      let order = world.targets()
      #expect(order.count == 4 && order[3] == "udp 192.0.2.3:5060")
      first[order[0], default: 0] += 1
    }
    let share = Double(first["udp 192.0.2.1:5060"] ?? 0) / 4_000
    #expect((0.70...0.78).contains(share), "seed 7: \(first)")
    #expect((1...160).contains(first["udp 192.0.2.4:5060"] ?? 0), "weight 0 has a very small chance: \(first)")
    // equal weights share equally, zeros alone by chance
    for weights in [[UInt64](repeating: 1, count: 2), [0, 0]] {
      let random = RandomSource.seeded(3)
      let count = (0..<2_000).filter { _ in weightedOrder(weights, random)[0] == 0 }.count
      #expect((900...1_100).contains(count), "\(weights): \(count)")
    }
  }

  @Test func `the last good answers are kept while DNS fails, and its news are taken`() {
    var world = World([trunk(port: 5060)], Zone(a: ["carrier.example": ["192.0.2.1"]], timeToLive: .seconds(5)))
    #expect(world.news == [.located(trunk: "carrier", [SocketAddress("192.0.2.1:5060")!])])
    world.zone.isDead = true
    world.advance(.seconds(3_600))
    #expect(world.targets() == ["udp 192.0.2.1:5060"])
    #expect(world.asked.count < 300, "asked \(world.asked.count) times in an hour")
    world.zone.isDead = false
    world.zone.a["carrier.example"] = ["192.0.2.2"]
    world.advance(.seconds(120))
    #expect(world.targets() == ["udp 192.0.2.2:5060"])
    #expect(world.news.last == .located(trunk: "carrier", [SocketAddress("192.0.2.2:5060")!]))
    // an empty answer does not remove servers
    world.zone.a = [:]
    world.advance(.seconds(120))
    #expect(world.targets() == ["udp 192.0.2.2:5060"])
  }

  @Test func `a type that the name server fails or drops holds nothing up, and counts once it is answered`() {
    let zone = Zone(
      srv: ["_sip._udp.carrier.example": [srv(1, 1, 5070, "a.example")]],
      a: ["a.example": ["192.0.2.1"], "carrier.example": ["192.0.2.5"]])
    let kinds: [DNSQuestion.Kind] = [.naptr, .srv, .aaaa]
    for drops in [false, true] {
      for choice in 1..<8 {
        let bad = Set(kinds.indices.filter { choice >> $0 & 1 == 1 }.map { kinds[$0] })
        var zone = zone
        if drops { zone.dropped = bad } else { zone.failing = bad }
        var world = World([trunk()], zone)
        world.advance(.seconds(5))
        #expect(
          world.targets() == [bad.contains(.srv) ? "udp 192.0.2.5:5060" : "udp 192.0.2.1:5070"], "\(bad), dropped: \(drops)")
        let asked = world.asked.count
        world.advance(.seconds(3_600))
        #expect(world.asked.count - asked < 1_000, "\(world.asked.count - asked) questions in an hour")
        (world.zone.dropped, world.zone.failing) = ([], [])
        world.advance(.seconds(90))
        #expect(world.targets() == ["udp 192.0.2.1:5070"], "\(bad), dropped: \(drops)")
      }
    }
    // one family is enough, at once
    for kind in [DNSQuestion.Kind.a, .aaaa] {
      var zone = Zone(a: ["carrier.example": ["192.0.2.5"]], aaaa: ["carrier.example": ["2001:db8::5"]])
      zone.dropped = [kind]
      #expect(World([trunk(port: 5060)], zone).targets() == [kind == .a ? "udp [2001:db8::5]:5060" : "udp 192.0.2.5:5060"])
    }
  }

  @Test func `a name that comes and goes with the answers to others is not asked each time`() {
    // SRV disappears and returns each second, and the addresses of the name itself, which have no answer, are needed in between
    var zone = Zone(
      srv: ["_sip._udp.carrier.example": [srv(1, 1, 5070, "a.example")]], a: ["a.example": ["192.0.2.1"]], timeToLive: .seconds(1)
    )
    zone.dropped = [.aaaa]
    var world = World([trunk(transport: .udp)], zone)
    for round in 0..<120 {
      world.zone.srv = round % 2 == 0 ? [:] : zone.srv
      world.zone.timeToLive = .seconds(1)
      world.advance(.seconds(6))
    }
    let asked = world.asked.count { $0 == DNSQuestion("carrier.example", .aaaa) }
    // 20 s until an answer is given up, and pauses of 2 to 60 s
    #expect(asked <= 720 / 20 && asked > 1, "\(asked)")
    world.zone.srv = zone.srv
    world.advance(.seconds(120))
    #expect(world.targets() == ["udp 192.0.2.1:5070"])
  }

  @Test func `a name that no server answers is reported as not located, once`() {
    for drops in [false, true] {
      var zone = Zone()
      if drops { zone.dropped = Set(DNSQuestion.Kind.allCases) } else { zone.isDead = true }
      var world = World([trunk()], zone)
      world.advance(.seconds(600))
      #expect(world.news == [.notLocated(trunk: "carrier")])
    }
  }

  @Test func `a name without an answer is told within 5 s, with name, reason and name servers`() {
    for drops in [false, true] {
      var zone = Zone()
      if drops { zone.dropped = Set(DNSQuestion.Kind.allCases) } else { zone.isDead = true }
      var world = World([trunk()], zone)
      world.feed(.nameServers(["10.0.0.1", "10.0.0.2:5353"]))
      world.advance(.seconds(5))
      #expect(world.news == [.notLocated(trunk: "carrier")])
      let status = world.machine.status("carrier", at: world.now, wallOffset: 0)
      #expect(status?.lookUp == "carrier.example: no DNS answer (10.0.0.1, 10.0.0.2:5353)" && status?.why == .notLocated)
      world.zone.dropped = []
      (world.zone.isDead, world.zone.a) = (false, ["carrier.example": ["192.0.2.1"]])
      world.advance(.seconds(120))
      #expect(world.machine.status("carrier", at: world.now, wallOffset: 0)?.lookUp == nil)
    }
    var empty = World([trunk()])
    empty.advance(.seconds(5))
    #expect(empty.machine.status("carrier", at: empty.now, wallOffset: 0)?.lookUp == "carrier.example: no such name or record")
  }

  @Test func `answers are asked for again when their time ends, within bounds`() {
    var world = World([trunk(port: 5060)], Zone(a: ["carrier.example": ["192.0.2.1"]], timeToLive: .seconds(30)))
    let first = world.asked.filter { $0.kind == .a }.count
    world.advance(.seconds(29))
    #expect(world.asked.filter { $0.kind == .a }.count == first)
    world.advance(.seconds(2))
    #expect(world.asked.filter { $0.kind == .a }.count == first + 1)
    var long = World([trunk(port: 5060)], Zone(a: ["carrier.example": ["192.0.2.1"]], timeToLive: .seconds(864_000)))
    let before = long.asked.filter { $0.kind == .a }.count
    long.advance(.seconds(3_601))
    #expect(long.asked.filter { $0.kind == .a }.count == before + 1)
    var zero = World([trunk(port: 5060)], Zone(a: ["carrier.example": ["192.0.2.1"]], timeToLive: .zero))
    zero.advance(.seconds(10))
    #expect((9...11).contains(zero.asked.filter { $0.kind == .a }.count))
  }

  @Test func `a server that failed comes last for a while`() {
    let zone = Zone(
      srv: ["_sip._udp.carrier.example": [srv(1, 1, 5060, "a.example"), srv(2, 1, 5060, "b.example")]],
      a: ["a.example": ["192.0.2.1"], "b.example": ["192.0.2.2"]])
    var world = World([trunk(transport: .udp)], zone)
    #expect(world.targets() == ["udp 192.0.2.1:5060", "udp 192.0.2.2:5060"])
    world.machine.serverFailed(SocketAddress("192.0.2.1:5060")!, retryAfter: 40, at: world.now)
    #expect(world.targets() == ["udp 192.0.2.2:5060", "udp 192.0.2.1:5060"])
    world.advance(.seconds(41))
    #expect(world.targets() == ["udp 192.0.2.1:5060", "udp 192.0.2.2:5060"])
  }

  @Test func `only a trunk without a stated transport sends large requests by TCP`() {
    let open = World([trunk("192.0.2.1")])
    #expect(open.machine.peer("carrier", at: open.now)?.target.large?.transport == .tcp)
    let stated = World([trunk("192.0.2.1", transport: .udp)])
    #expect(stated.machine.peer("carrier", at: stated.now)?.target.large == nil)
  }

  @Test func `hostile answers stay within bounds`() {
    let many = (0..<2_000).map { srv(UInt16($0 % 3), UInt16.max, 5060, "h\($0).example") }
    let zone = Zone(
      srv: ["_sip._udp.carrier.example": many],
      a: Dictionary(uniqueKeysWithValues: (0..<2_000).map { ("h\($0).example", ["192.0.2.\($0 % 250)"]) }))
    let world = World([trunk(transport: .udp)], zone)
    // two queries for the name itself, which are sent beside its SRV
    #expect(world.targets().count <= 16 && world.asked.count <= 64 + 2)
    let loop = World(
      [trunk()],
      Zone(
        naptr: ["carrier.example": [naptr(1, 1, "SIP+D2U", "carrier.example")]],
        srv: ["carrier.example": [srv(1, 1, 5060, "carrier.example")]]))
    #expect(loop.targets().isEmpty)
  }
}
