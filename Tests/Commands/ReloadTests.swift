import AppSessions
import CallFlow
import CallModel
import JSONWebToken
import PushPolicy
import Testing
import TrunklineBytes

@testable import Configuration
@testable import trunkline

/// What the reference says of SIGHUP, against what `serve` does.
@Suite struct ReloadTests {
  /// A change of each section of the file, and of each key that differs from its section.
  private let changes: [(path: String, change: (inout Settings) -> Void)] = [
    ("listen", { $0.listen.admin = SocketAddress(.loopback, 9091) }),
    ("admin", { $0.admin.tokens = [.init(name: "crm", secrets: [Redacted([1])])] }),
    ("local_networks", { $0.localNetworks = [] }),
    ("dns", { $0.dns.servers = [SocketAddress(.loopback, 53)] }),
    ("media", { $0.media.threads = 3 }),
    ("media", { $0.calls.opusBitrateWide = 50_000 }),
    ("auth", { $0.auth.audience = "other" }),
    ("trunks", { $0.trunks = [.init(routing: .init(name: "t"))] }),
    ("users", { ($0.users, $0.anyUser) = ([.init(id: "u", numbers: [])], .init(id: "", numbers: [])) }),
    ("users", { $0.userSource = UserSource(Webhook(url: "https://example.org/users", key: Redacted([1]))) }),
    ("routes", { $0.routes.emergencyNumbers = [] }),
    ("routes", { $0.routes.connectsUsers = false }),
    ("routes.decline_code", { $0.calls.declineCode = 603 }),
    ("push", { $0.push = .init(gateway: "wss://phone.example") }),
    (
      "cluster",
      {
        $0.cluster = .init()
        $0.cluster?.nodes = .init()
      }
    ),
    (
      "cluster.edges.http",
      {
        $0.cluster = .init()
        $0.cluster?.edges = .init()
        $0.cluster?.edges?.http = [IPNetwork("192.0.2.8/32")!]
      }
    ),
    ("turn", { $0.turn = .init(urls: ["turn:turn.example.com"], secret: Redacted([1])) }),
    ("verifier", { $0.verifier = .init(url: "https://verifier.example") }),
    ("events", { $0.events = .init(hasDigits: true) }),
    ("recording", { $0.recording = .init() }),
    ("history", { $0.history.perUser = 7 }),
    ("timers", { $0.calls.timers.ring = .seconds(10) }),
    ("limits", { $0.calls.bounds.calls = 1 }),
    ("store", { $0.store = "/other" }),
    ("records", { $0.records = "/other" }),
    ("records", { $0.streamsRecords = true }),
    ("log", { $0.log.level = .debug }),
    ("branding", { $0.branding.name = "Acme" }),
    ("hep", { $0.hep = .init(address: SocketAddress(.loopback, 9060)) }),
  ]

  @Test func `SIGHUP takes what the reference says, and names the rest each time`() throws {
    var waiting: Set<String> = []
    for section in ConfigurationKeys.sections {
      for path in section.paths where !path.isEmpty && !section.isAppliedBySIGHUP {
        waiting.insert(String(path.prefix { $0 != "." && $0 != "[" }))
      }
      for key in section.keys where key.waitsForRestart {
        waiting.insert(section.paths[0].isEmpty ? key.name : section.paths[0] + "." + key.name)
      }
    }
    let sections = try #require(ConfigurationKeys.sections.first).keys.map(\.name)
    #expect(Set(sections).union(waiting) == Set(changes.map(\.path)), "each has a change here")
    for (path, change) in changes {
      var running = Settings()
      running.events = .init()
      var new = running
      change(&new)
      let expected = waiting.contains(path) ? [path] : []
      #expect(new.partsThatNeedRestart(comparedWith: running) == expected)
      #expect(new.partsThatNeedRestart(comparedWith: running.reloaded(from: new)) == expected, "the second SIGHUP")
    }
  }

  @Test func `a journal of events begins and ends with a restart`() {
    var with = Settings()
    with.events = .init(hasDigits: true)
    #expect(with.partsThatNeedRestart(comparedWith: Settings()) == ["events"])
    #expect(Settings().partsThatNeedRestart(comparedWith: with) == ["events"])
    #expect(Settings().reloaded(from: with).events == nil && with.reloaded(from: Settings()).events == with.events)
  }
}
