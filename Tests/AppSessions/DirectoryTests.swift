import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// Requests that only read, and the version in `welcome`.
@Suite struct DirectoryTests {
  private func bench(_ caps: [String] = ["media.active", "dir", "hist"]) -> Bench {
    var bench = Bench()
    bench.reconfigure { $0.caps = caps }
    return bench
  }

  @Test func `welcome has the newest version of the user's and the accounts' directories, also of a resume`() throws {
    var bench = bench()
    for (scope, version) in [("user:alice", 5), ("user:bob", 90), ("account:default", 7), ("account:work", 80)] {
      bench.perform(.directory(scope: scope, version: version))
    }
    let client = try bench.login()
    #expect(client.welcome.dirVersion == 7 && client.welcome.caps == ["media.active", "dir", "hist"])
    bench.perform(.directory(scope: "user:alice", version: 12))
    bench.give(.closed(client.connection, nil))
    let again = bench.resume(client, lastSeq: 0)
    guard case .message(.welcome(let welcome))? = bench.frames(again).first?.body else { throw Trouble("no welcome") }
    #expect(welcome.resumed && welcome.dirVersion == 12)
    #expect(try bench.login("bob").welcome.dirVersion == 90)
  }

  @Test func `a read goes to its thread each time it is asked, and is answered by what is told`() throws {
    var bench = bench()
    let client = try bench.login()
    for _ in 0..<2 { bench.send(.dirGet(DirectoryGet(have: 3)), on: client.connection, id: number(40)) }
    let events = bench.takeEvents()
    #expect(events.count == 2, "a repeat is no repeat of an effect")
    guard case .request(client.device, client.session, let token, .dirGet(let get), call: nil)? = events.first else {
      throw Trouble("\(events)")
    }
    #expect(get.have == 3 && token.request == number(40))
    bench.perform(.notify(client.device, .ok(Success(dir: DirectoryAnswer(version: 4, parts: 1))), re: number(40)))
    bench.perform(.notify(client.device, .dirFull(DirectoryPart(version: 4)), re: number(40)))
    bench.perform(.notify(client.device, .dirChanged(DirectoryChanged(version: 5))))
    let frames = bench.frames(client.connection)
    #expect(frames.map(\.re) == [number(40), number(40), nil] && frames.allSatisfy { $0.seq == nil && $0.call == nil })
    #expect(bench.machine.stats.repeats == 0)
  }

  @Test func `what is told to a device that is gone, or not welcomed yet, is dropped`() throws {
    var bench = bench()
    let client = try bench.login()
    bench.give(.closed(client.connection, nil))
    bench.perform(.notify(client.device, .dirChanged(DirectoryChanged(version: 5))))
    bench.perform(.notify(DeviceKey(user: "bob", device: "x"), .dirChanged(DirectoryChanged(version: 5))))
    let again = bench.resume(client, lastSeq: 0)
    #expect(bench.frames(again).count == 1, "welcome, which has the version")
  }

  @Test func `a change that is told before the welcome is in it: other accounts make another version`() throws {
    var bench = bench()
    bench.perform(.directory(scope: "user:alice", version: 5))
    let id = bench.open()
    bench.send(.hello(Hello(.auth(Bench.token()), device: .init(id: "d1"))), on: id, id: number(1))
    guard case .connected(let key, let session, _, resumed: false)? = bench.takeEvents().last else { throw Trouble("refused") }
    bench.perform(.notify(key, .dirChanged(DirectoryChanged(version: 9))))
    #expect(bench.frames(id).isEmpty, "nothing before the welcome")
    bench.perform(.welcome(session, calls: [], gone: [], live: []))
    guard case .message(.welcome(let welcome))? = bench.frames(id).first?.body else { throw Trouble("no welcome") }
    #expect(welcome.dirVersion == 9)
  }

  @Test func `without directories, and on a wake token, a read is refused`() throws {
    var bench = bench(["media.active", "hist"])
    let client = try bench.login()
    bench.send(.dirGet(DirectoryGet()), on: client.connection, id: number(40))
    bench.send(.histList(HistoryList()), on: client.connection, id: number(41))
    #expect(bench.frames(client.connection).map(\.body) == [.message(.err(Failure(.unsupported)))])
    #expect(bench.takeEvents().count == 1)
    var waking = Bench(wakes: Bench.wakes)
    waking.reconfigure {
      $0.caps = ["dir", "hist"]
      $0.wakeTokens = Bench.wakes
    }
    let token = Bench.wakes.token(
      Wake(call: callA, device: DeviceKey(user: "alice", device: "d1"), firstUseBefore: waking.now + .seconds(60)))
    let woken = try waking.woken(token)
    _ = waking.takeEvents()
    waking.send(.histList(HistoryList()), on: woken.connection, id: number(42))
    guard case .message(.err(let failure))? = waking.frames(woken.connection).first?.body else { throw Trouble("no answer") }
    #expect(failure.code == .auth && waking.takeEvents().isEmpty)
  }

  @Test func `a login token names a device and its accounts for a request by HTTP; another text names nobody`() throws {
    var bench = bench()
    let request = HTTPRequestID(1)
    bench.give(.httpLogin(request, bearer: Bench.token()))
    #expect(bench.takeEvents() == [.httpLogin(request, DeviceKey(user: "alice", device: "d1"))])
    bench.perform(.httpAnswer(request, .ok))
    guard case .httpLogin(request, let device, let accounts)? = bench.actions.last else { throw Trouble("no login") }
    #expect(device == DeviceKey(user: "alice", device: "d1") && accounts == ["default"])
    for text in ["", "a.b.c", Bench.token("mallory"), Bench.token(lives: -3_600)] {
      bench.give(.httpLogin(request, bearer: text))
      guard case .httpRefused(request, let failure)? = bench.actions.last else { throw Trouble("no refusal") }
      #expect(failure.code == .auth && bench.takeEvents().isEmpty)
    }
  }
}
