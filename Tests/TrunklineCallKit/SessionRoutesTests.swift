import AppleStandIn
import Foundation
import Synchronization
import Testing

@testable import TrunklineCallKit

/// The routes of AVAudioSession, on the stand-in's.
@Suite(.serialized) struct SessionRoutesTests {
  private final class App: Sendable {
    let routes: SessionRoutes
    private let lists = Mutex<[AudioRouteList]>([])
    init() {
      routes = SessionRoutes()
      routes.start { [weak self] list in self?.lists.withLock { $0.append(list) } }
    }
    var list: AudioRouteList? { lists.withLock { $0.last } }
    var count: Int { lists.withLock { $0.count } }
  }
  private final class Held: Sendable {
    private let value = Mutex<App?>(nil)
    func set(_ app: App) { value.withLock { $0 = app } }
    var app: App? { value.withLock { $0 } }
  }

  private func launch() throws -> (StandInPhone, App) {
    let phone = StandInPhone(.strict, clock: .virtual)
    let held = Held()
    phone.launch {
      let app = App()
      held.set(app)
      return app
    }
    phone.advance(.seconds(1))
    return (phone, try #require(held.app))
  }

  @Test func `receiver and loudspeaker are there, and a headset from when it is`() throws {
    let (phone, app) = try launch()
    #expect(app.list?.available.map(\.kind) == [.receiver, .speaker] && app.list?.current?.kind == .receiver)
    phone.route(.bluetooth)
    phone.advance(.seconds(1))
    #expect(app.list?.available.map(\.kind) == [.receiver, .speaker, .bluetooth] && app.list?.current?.kind == .bluetooth)
    #expect(app.list?.hasMicrophone == true)
    phone.route(.speaker)
    phone.advance(.seconds(1))
    #expect(app.list?.available.count == 3 && app.list?.current?.kind == .speaker)
    phone.route(.headphones)
    phone.advance(.seconds(1))
    #expect(app.list?.current?.kind == .headset && app.list?.available.contains { $0.id == app.list?.current?.id } == true)
    // disconnected
    phone.route(.receiver)
    phone.advance(.seconds(1))
    #expect(app.list?.available.map(\.kind) == [.receiver, .speaker] && app.list?.current?.kind == .receiver)
  }

  @Test func `a choice is carried out by the session, which says so`() throws {
    let (phone, app) = try launch()
    phone.route(.bluetooth)
    phone.advance(.seconds(1))
    let bluetooth = try #require(app.list?.current)
    let speaker = try #require(app.list?.available.first { $0.kind == .speaker })
    phone.inApp { app.routes.use(speaker) }
    phone.advance(.seconds(1))
    #expect(app.list?.current == speaker && phone.screen.isSpeakerOn)
    // with a cable, too: both are there
    phone.route(.headphones)
    phone.advance(.seconds(1))
    #expect(app.list?.current?.kind == .headset)
    phone.inApp { app.routes.use(bluetooth) }
    phone.advance(.seconds(1))
    #expect(app.list?.current == bluetooth && app.list?.available.count == 4)
  }

  @Test func `nothing is told after the end`() throws {
    let (phone, app) = try launch()
    app.routes.stop()
    let count = app.count
    phone.route(.bluetooth)
    phone.advance(.seconds(1))
    #expect(app.count == count && count > 0)
  }
}
