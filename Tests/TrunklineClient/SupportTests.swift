import Foundation
import Synchronization
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

@testable import TrunklineClient

extension PhoneTests {
  /// Routes that the test plays.
  private final class Routes: AudioRoutes {
    private let changed = Mutex<(@Sendable (AudioRouteList) -> Void)?>(nil)
    let uses = AsyncStream.makeStream(of: String.self)
    func start(_ changed: @escaping @Sendable (AudioRouteList) -> Void) {
      self.changed.withLock { $0 = changed }
      list(["receiver", "speaker", "buds"], "receiver")
    }
    func list(_ ids: [String], _ current: String) {
      let routes = ids.map {
        AudioRoute(id: $0, kind: $0 == "buds" ? .bluetooth : $0 == "speaker" ? .speaker : .receiver, name: $0)
      }
      changed.withLock { $0 }?(AudioRouteList(available: routes, current: routes.first { $0.id == current }))
    }
    func use(_ route: AudioRoute?) { uses.continuation.yield(route?.id ?? "system") }
    func stop() { changed.withLock { $0 = nil } }
  }

  private func phone(_ sockets: FakeSockets, _ routes: Routes? = nil) -> Phone {
    Phone(
      "wss://phone.example.com/v1/connect", device: "desk", system: .none, audio: NoAudio(), sockets: sockets, routes: routes
    ) { "a.b.c" }
  }
  private func online(_ phone: Phone, _ sockets: FakeSockets) async {
    for await _ in sockets.hellos.stream { break }
    sockets.welcome()
    for await next in phone.states where next == .online { return }
  }
  private func until(_ isTrue: () -> Bool) async {
    while !isTrue() { await Task.yield() }
  }

  @Test func `an audio route is chosen, lost, said to be lost, and taken back when it returns`() async throws {
    let (sockets, routes) = (FakeSockets(), Routes())
    let phone = phone(sockets, routes)
    await until { phone.audioRoutes.count == 3 }
    let buds = try #require(phone.audioRoutes.last)
    #expect(phone.audioRoute?.id == "receiver" && phone.chosenAudioRoute == nil)
    #expect(!phone.useAudioRoute(AudioRoute(id: "car", kind: .carPlay, name: "Car")))
    let events = phone.events
    #expect(phone.useAudioRoute(buds))
    var uses = routes.uses.stream.makeAsyncIterator()
    #expect(await uses.next() == "buds")
    routes.list(["receiver", "speaker", "buds"], "buds")
    await until { phone.audioRoute == buds && phone.chosenAudioRoute == buds }
    routes.list(["receiver", "speaker"], "receiver")
    #expect(await uses.next() == "system")
    await until { phone.isAudioRouteFallback }
    #expect(phone.chosenAudioRoute == buds && phone.audioRoute?.id == "receiver")
    routes.list(["receiver", "speaker", "buds"], "receiver")
    #expect(await uses.next() == "buds")
    await until { !phone.isAudioRouteFallback }
    var told: [String] = []
    for await event in events {
      switch event {
      case .audioRouteFellBack(let from, let to): told.append("\(from.id) to \(to?.id ?? "none")")
      case .audioRouteReturned(let route): told.append("\(route.id) again")
      default: continue
      }
      if told.count == 2 { break }
    }
    #expect(told == ["buds to receiver", "buds again"])
  }

  @Test func `a preflight test on a session has its round trip, and a second one at once the same result`() async throws {
    let (sockets, routes) = (FakeSockets(), Routes())
    let phone = phone(sockets, routes)
    await online(phone, sockets)
    await until { !phone.audioRoutes.isEmpty }
    async let first = phone.preflight()
    async let second = phone.preflight()
    let answers = Task { @MainActor in
      var answered = 0
      while answered < 3 {
        let asked = sockets.sent.filter { $0.contains(#""t":"device.state""#) }
        if asked.count > answered,
          let object = try? JSONSerialization.jsonObject(with: Data(asked[answered].utf8)) as? [String: Any],
          let id = (object["id"] as? String).flatMap({ Identifier($0) })
        {
          // a refusal is an answer, too
          let body: ServerMessage = answered == 1 ? .err(Failure(.badState)) : .ok(Success())
          sockets.deliver(.received(ServerFrame(body, re: id).encoded()))
          answered += 1
        }
        await Task.yield()
      }
    }
    let (one, two) = await (first, second)
    await answers.value
    #expect(one == two && one.isReady && one.network.roundTripMilliseconds != nil && one.servers.isEmpty)
    #expect(one.microphone.route?.id == "receiver")
    #expect(sockets.sent.count { $0.contains(#""t":"device.state""#) } == 3)
  }

  @Test func `a preflight test without a gateway says why, and a denied microphone is said`() async {
    let phone = phone(FakeSockets())
    phone.microphone(.denied)
    let result = await phone.preflight()
    #expect(!result.isReady && result.network.error == .notConnected && result.microphone.error == .noMicrophone)
  }

  @Test func `the log has the launch and the login, and no token`() async {
    let sockets = FakeSockets()
    let lines = Mutex<[String]>([])
    let phone = phone(sockets)
    await online(phone, sockets)
    phone.log(.debug) { entry in lines.withLock { $0.append(entry.description) } }
    phone.foreground(false)
    await until { lines.withLock { $0.contains { $0.contains("foreground") } } }
    let text = lines.withLock { $0 }
    for word in [
      "token-asked", "token-taken", "socket-connect host=phone.example.com", "socket-opened", "session-state is=online",
    ] {
      #expect(text.contains { $0.contains(word) }, "\(word): \(text)")
    }
    #expect(!text.contains { $0.contains("a.b.c") || $0.contains("/v1/connect") })
  }
}
