import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

@Suite struct SessionTableTests {
  private let device = Hello.Device(id: "cell")
  private var actions: [ClientSession.Action] = []

  private func table(capabilities: [String] = ["nodes"]) -> SessionTable {
    SessionTable(PhoneMachine.Configuration(device: device, capabilities: capabilities), random: .seeded(2))
  }
  private mutating func give(_ input: ClientSession.Input, of number: Int, _ table: inout SessionTable, at time: Double = 1) {
    actions = []
    table.handle(input, of: number, hasCall: false, at: seconds(time), into: &actions)
  }
  /// Connects the session, and its gateway welcomes it.
  private mutating func welcome(_ number: Int, url: String? = nil, _ table: inout SessionTable, at time: Double = 1) {
    give(.start, of: number, &table, at: time)
    give(.socketOpened, of: number, &table, at: time)
    let welcome = Welcome(
      sid: "s", resumeToken: "r", resumed: false, replayFrom: 1, time: 0, hb: 15_000, ice: [], calls: [], dirVersion: 0,
      caps: [], url: url)
    give(.frame(ServerFrame(.welcome(welcome), re: id(0)).encoded()), of: number, &table, at: time)
    table.welcomed(welcome, by: number, at: seconds(time))
  }
  private func hellos(_ actions: [ClientSession.Action]) -> [Hello.Proof] {
    actions.compactMap { action in
      guard case .write(let bytes) = action, case .message(.hello(let hello))? = (try? ClientFrame(decoding: bytes))?.body else {
        return nil
      }
      return hello.proof
    }
  }

  @Test mutating func `an event, a request and a login for a number that has no session have no effect`() {
    var table = table()
    for number in [SessionTable.own, 1, 7] {
      give(.start, of: number, &table)
      holds(table.request(.deviceDel, call: nil, of: number, at: seconds(1), into: &actions) == nil)
      table.notify(.ping, call: id(1), of: number, at: seconds(1), into: &actions)
      holds(table.logIn(number, token: Redacted("a")) == nil && !table.settle(number, hasCall: false, at: seconds(99)))
      table.remove(number)
      holds(actions.isEmpty && !table.exists(number) && !table.isOnline(number) && table.wake(of: number) == nil)
    }
    table.restore(token: Redacted("a"), wake: push(1))
    #expect(!table.exists(SessionTable.own) && table.nextDeadline == nil && table.wake(of: SessionTable.own) == nil)
  }

  @Test mutating func `without a token the session is the push's, until a login; a refused login restores it`() {
    for hasToken in [true, false] {
      var table = table()
      table.open(token: hasToken ? Redacted("a") : nil, push: push(1, at: "wss://n1"), device: device)
      #expect((table.wake(of: SessionTable.own) == nil) == hasToken)
      #expect(table.gateway(of: SessionTable.own) == (hasToken ? nil : "wss://n1"))
      give(.start, of: SessionTable.own, &table)
      give(.socketOpened, of: SessionTable.own, &table)
      guard let proof = hellos(actions).first else { return #expect(Bool(false), "no hello") }
      if case .wake("w1") = proof { #expect(!hasToken) } else { #expect(hasToken) }
      holds(table.logIn(SessionTable.own, token: Redacted("b"))?.call == (hasToken ? nil : id(1)))
      holds(table.wake(of: SessionTable.own) == nil && table.logIn(SessionTable.own, token: Redacted("c")) == nil, "repeated")
      table.restore(token: nil, wake: hasToken ? nil : push(1))
      #expect((table.wake(of: SessionTable.own) == nil) == hasToken)
    }
  }

  @Test mutating func `further sessions are limited, have new numbers, and one is found by its address or its node`() {
    var table = table()
    for number in 1...8 { holds(table.openFurther(push(UInt64(number), at: "wss://n\(number)"), device: device) == number) }
    holds(table.openFurther(push(9, at: "wss://n9"), device: device) == nil)
    #expect(!table.hasRoom(for: push(9, at: "wss://n9"), hasToken: true))
    table.remove(3)
    holds(table.openFurther(push(9, at: "wss://n9"), device: device) == 9 && table.furtherNumbers == [1, 2, 4, 5, 6, 7, 8, 9])
    welcome(2, url: "wss://home", &table)
    #expect(table.furtherSession(at: push(1, at: "wss://home")) == 2 && table.furtherSession(at: push(1, at: "wss://n2")) == 2)
    #expect(table.furtherSession(at: push(1, at: "wss://n3")) == nil)
    // a second call at a node needs a login
    let (same, other) = (push(2, at: "wss://n2"), push(11, at: "wss://n2"))
    #expect(table.hasRoom(for: same, hasToken: false) && !table.hasRoom(for: other, hasToken: false))
    #expect(table.hasRoom(for: other, hasToken: true))
    table.logIn(2, token: Redacted("a"))
    #expect(table.hasRoom(for: other, hasToken: false))
  }

  @Test mutating func `a push is of another node once the own session's node is known, and if its address is one`() {
    var table = table()
    #expect(!table.isOfOtherNode(push(1, at: "wss://n1")))
    table.open(token: Redacted("a"), push: nil, device: device)
    #expect(!table.isOfOtherNode(push(1, at: "wss://n1")), "not known yet")
    welcome(SessionTable.own, url: "wss://n0", &table)
    for (address, isOther) in [("wss://n1", true), ("wss://n0", false), ("n1", false), (nil, false)] as [(String?, Bool)] {
      #expect(table.isOfOtherNode(push(1, at: address)) == isOther)
    }
    var single = self.table(capabilities: [])
    single.open(token: nil, push: push(1, at: "wss://n0"), device: device)
    #expect(!single.isOfOtherNode(push(2, at: "wss://n1")))
  }

  @Test mutating func `a further session without a call is finished when it is quiet, or after its time; a call keeps it`() {
    var table = table()
    _ = table.openFurther(push(1, at: "wss://n1"), device: device)
    holds(!table.settle(1, hasCall: false, at: seconds(1)) && table.nextDeadline == seconds(16))
    holds(!table.settle(1, hasCall: false, at: seconds(15.9)) && table.settle(1, hasCall: false, at: seconds(16)))
    holds(!table.settle(1, hasCall: true, at: seconds(16)) && table.nextDeadline == nil)
    holds(!table.settle(1, hasCall: false, at: seconds(20)), "its time begins again")
    welcome(1, &table, at: 21)
    holds(table.isQuiet(1) && table.settle(1, hasCall: false, at: seconds(21)))
    _ = table.request(.deviceDel, call: nil, of: 1, at: seconds(22), into: &actions)
    holds(!table.isQuiet(1) && !table.settle(1, hasCall: false, at: seconds(22)))
  }

  @Test mutating func `the own session is not finished for want of a call`() {
    var table = table()
    table.open(token: Redacted("a"), push: nil, device: device)
    welcome(SessionTable.own, &table)
    holds(!table.settle(SessionTable.own, hasCall: false, at: seconds(99)))
    #expect(table.furtherNumbers == [] && table.onlineAt(SessionTable.own) == seconds(1))
    table.remove(SessionTable.own)
    #expect(table.onlineAt(SessionTable.own) == nil, "the next session has its own time")
  }

  @Test mutating func `a request beyond the limit is refused without actions`() {
    var table = table()
    table.open(token: Redacted("a"), push: nil, device: device)
    for _ in 0..<Limits.openRequests {
      holds(table.request(.deviceDel, call: nil, of: SessionTable.own, at: seconds(1), into: &actions) != nil)
      actions = []
    }
    holds(table.request(.deviceDel, call: nil, of: SessionTable.own, at: seconds(1), into: &actions) == nil)
  }

  @Test mutating func `each change of state, foreground and relays is reported once, and of servers only TURN's`() {
    var table = table()
    holds(!table.move(to: .idle) && table.move(to: .connecting) && !table.move(to: .connecting) && table.state == .connecting)
    #expect(table.appState == .fg)
    table.move(toForeground: false)
    #expect(table.appState == .bg && !table.isForeground)
    holds(table.received([ICEServer(urls: ["stun:a.example"])]) == nil)
    let servers = [ICEServer(urls: ["turn:a.example"], username: "u", credential: "c")]
    holds(table.received(servers)?.count == 1 && table.received(servers) == nil && table.received([])?.isEmpty == true)
  }
}
