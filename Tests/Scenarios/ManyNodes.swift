import AppSessions
import CallFlow
import CallModel
import Cluster
import GatewayCore
import MemorySharedStore
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// Several gateways on one virtual clock: each a `World` with its own cluster machine, over a shared store in memory. An edge
/// before them follows a redirect; devices open further sockets at nodes that wake them.
final class ManyNodes {
  private(set) var worlds: [World] = []
  var sharedStore: MemorySharedStore
  private(set) var now = Instant(nanoseconds: 1_000_000_000)
  private var lives: Int64 = 0
  private var dead: Set<Int> = []
  /// Stopped processes, and the events that the shared store sent them meanwhile.
  private var stopped: [Int: [SharedStoreEvent]] = [:]
  /// Isolated processes: they reach neither the shared store nor other nodes.
  private var cut: Set<Int> = []
  /// Devices do not follow `call.wake`.
  var ignoresWakes = false
  /// Records of all nodes, also of those that died.
  var records: [CallRecord] { worlds.flatMap(\.records) + before.flatMap(\.records) }
  /// The worlds of processes that died.
  private(set) var before: [World] = []
  private let seed: UInt64
  /// Legs of dead nodes that were closed, with the node that closed them.
  private(set) var closed: [(by: Int, call: CallID, legs: [OrphanedLeg])] = []
  private(set) var wakes: [(device: String, node: Int, call: CallID)] = []

  private let routing: (inout Routing) -> Void

  init(_ count: Int = 3, seed: UInt64 = 1, routing: @escaping (inout Routing) -> Void = { _ in }) {
    (self.seed, self.routing) = (seed, routing)
    sharedStore = MemorySharedStore(seed: seed)
    for index in 0..<count { begin(index) }
    run(.seconds(3))
  }

  static func url(_ index: Int) -> String { "wss://n\(index)/v1/connect" }

  private func begin(_ index: Int) {
    lives += 1
    let incarnation = Incarnation(node: "n\(index)", started: lives)
    var settings = ClusterMachine.Settings(
      incarnation, url: Self.url(index), sip: "sip:10.0.0.\(index + 1):5060", version: "1")
    (settings.lease, settings.renewal, settings.lostAfter) = (.seconds(2), .milliseconds(600), .seconds(5))
    let machine = ClusterMachine(settings, random: .seeded(seed &+ UInt64(lives) &* 77), at: now)
    let sessions = SessionCluster(
      incarnation: incarnation.description, url: Self.url(index), key: Array("the same thirty-two bytes at all".utf8))
    let world = World(seed: seed &+ UInt64(lives), cluster: machine, sessionCluster: sessions) { configuration, routes in
      configuration.isClustered = true
      configuration.push?.gateway = Self.url(index)
      routing(&routes)
    }
    world.now = now
    world.carrier.isEdge = true
    world.onCluster = { [unowned self] in perform($0, index) }
    world.onWake = { [unowned self] device, wake in follow(wake, device, at: index) }
    if index < worlds.count { worlds[index] = world } else { worlds.append(world) }
    sharedStore.attach(index, incarnation, at: now)
    tellSessions(of: world, at: index)
  }

  /// As the shell does: once a second the sessions are notified of the other nodes.
  private func tellSessions(of world: World, at index: Int) {
    world.after(.seconds(1)) { [unowned self, unowned world] in
      guard isAlive(index), worlds[index] === world, let cluster = world.core.cluster else { return }
      let others = cluster.nodes.filter { $0.lease.incarnation != cluster.incarnation && $0.liveness != .dead }
      world.tell(
        .command(
          .nodes(
            others.map {
              SessionNode(
                $0.lease.incarnation.description, url: $0.lease.url, isOpen: $0.liveness == .living && !$0.lease.refuses)
            })))
      tellSessions(of: world, at: index)
    }
  }

  // MARK: processes

  func kill(_ index: Int) {
    dead.insert(index)
    sharedStore.detach(index)
  }

  func restart(_ index: Int) {
    let old = worlds[index]
    before.append(old)
    dead.remove(index)
    begin(index)
    if let incarnation = old.core.cluster?.settings.incarnation, !old.journal.isEmpty {
      let entries = old.journal.values.map { CallEntry($0, users: $0.user.map { [$0] } ?? []) }
      give(.inherited(entries, of: incarnation), to: index)
    }
  }

  func isAlive(_ index: Int) -> Bool { !dead.contains(index) }

  /// SIGSTOP: nothing is handled, and the shared store's events wait in the socket.
  func stop(_ index: Int) { stopped[index] = [] }

  /// SIGCONT: overdue timers fire before the socket is read.
  func resume(_ index: Int) {
    let waiting = stopped.removeValue(forKey: index) ?? []
    worlds[index].now = now
    while let due = worlds[index].nextTime, due <= now { worlds[index].step() }
    for event in waiting { give(.sharedStore(event), to: index) }
  }

  /// Cuts the network between this node and the shared store and other nodes; its devices and its trunk stay.
  func cutOff(_ index: Int) {
    cut.insert(index)
    sharedStore.cut(index, at: now)
  }

  func mend(_ index: Int) {
    cut.remove(index)
    sharedStore.mend(index, at: now)
  }

  /// An orderly stop, once its calls have ended.
  func end(_ index: Int) {
    give(.stopping, to: index)
    kill(index)
  }

  // MARK: time

  func run(_ duration: Duration) {
    let end = now + duration
    var turns = 0
    while true {
      let living = worlds.indices.filter { !dead.contains($0) && stopped[$0] == nil }
      let next = ([sharedStore.next] + living.map { worlds[$0].nextTime }).compactMap(\.self).min() ?? .distantFuture
      guard next <= end else { break }
      now = max(now, next)
      while let (client, event) = sharedStore.take(at: now) {
        if stopped[client] != nil {
          stopped[client]?.append(event)
        } else if isAlive(client) {
          give(.sharedStore(event), to: client)
        }
      }
      for index in living where isAlive(index) {
        worlds[index].now = now
        while let due = worlds[index].nextTime, due <= now, isAlive(index) {
          worlds[index].step()
          turns += 1
          if turns > 500_000 {
            Issue.record("a deadline does not move")
            return
          }
        }
      }
    }
    now = end
    for index in worlds.indices where isAlive(index) { worlds[index].now = end }
  }

  private func give(_ input: ClusterMachine.Input, to index: Int) {
    worlds[index].now = now
    worlds[index].give(cluster: input)
  }

  func after(_ delay: Duration, at index: Int, _ body: @escaping () -> Void) {
    worlds[index].after(delay) { [unowned self] in if isAlive(index) { body() } }
  }

  private func perform(_ action: ClusterMachine.Action, _ index: Int) {
    switch action {
    case .sharedStore(let id, let request): sharedStore.send(index, id, request, at: now)
    case .probe(let incarnation, _):
      let target = worlds.firstIndex { $0.core.cluster?.settings.incarnation.node == incarnation.node }
      let isThere = target.map { isAlive($0) } ?? false
      let isSilent = cut.contains(index) || target.map { stopped[$0] != nil || cut.contains($0) } ?? false
      worlds[index].after(isSilent ? .seconds(1) : isThere ? .milliseconds(5) : .milliseconds(2)) { [unowned self] in
        if isAlive(index) { give(.probed(incarnation, isSilent ? .silent : isThere ? .answered : .refused), to: index) }
      }
    case .close(let call, let legs): closed.append((index, call, legs))
    case .reapedBefore(let call): worlds[index].journal[call] = nil
    default: break
    }
  }

  // MARK: devices

  /// A killed app that a push led to this node, which is not the one that made its token.
  func launched(_ device: String, by push: CallPush, at index: Int) -> App {
    let app = App(worlds[index], device: device)
    app.caps = ["media.active", "nodes"]
    app.offered = [push.call]
    worlds[index].apps.append(app)
    worlds[index].now = now
    app.connect(waking: push.wake.exposed)
    run(.milliseconds(300))
    return app
  }

  /// A device that is connected to a node, and knows several.
  @discardableResult
  func app(_ device: String, at index: Int, _ configure: (App) -> Void = { _ in }) -> App {
    let app = App(worlds[index], device: device)
    app.caps = ["media.active", "nodes"]
    configure(app)
    worlds[index].apps.append(app)
    worlds[index].now = now
    app.connect()
    run(.milliseconds(60))
    return app
  }

  /// `call.wake` arrived through a socket at one node: the device opens a further one at the call's node.
  private func follow(_ wake: CallWake, _ device: App, at index: Int) {
    guard !ignoresWakes, let target = worlds.indices.first(where: { Self.url($0) == wake.gw }) else { return }
    wakes.append((device.device, target, wake.call))
    guard isAlive(target), !known(wake.call, device.device) else { return }
    let further = App(worlds[target], device: device.device)
    further.caps = device.caps
    further.answersAfter = device.answersAfter
    further.offered = [wake.call]
    worlds[target].apps.append(further)
    further.connect(waking: wake.wake)
  }

  /// Whether a connected app of the device already shows this UUID.
  private func known(_ call: CallID, _ device: String) -> Bool {
    worlds.enumerated().contains { index, world in
      isAlive(index) && world.apps.contains { $0.device == device && $0.offered.contains(call) && $0.isOpen }
    }
  }

  /// All sockets of a device.
  func sockets(_ device: String) -> [App] { (worlds + before).flatMap { $0.apps.filter { $0.device == device } } }

  /// Answers on the device's socket that has a ringing call.
  func answer(_ device: String) {
    for index in worlds.indices where isAlive(index) {
      worlds[index].now = now
      for app in worlds[index].apps where app.device == device && app.isOpen {
        for call in app.offered where app.terminals[call] == nil { app.tap(call) }
      }
    }
  }

  /// Calls that began and have no record anywhere, though their journal entry was on disk or in the shared store.
  var unrecorded: Set<CallID> {
    let begun = (worlds + before).flatMap { $0.traces.filter { $0.stage == .ringing || $0.stage == .connected }.map(\.call) }
    // journal entries on the disk of a node that did not return
    let waiting = worlds.indices.filter { !isAlive($0) }.flatMap { worlds[$0].journal.keys }
    return Set(begun).subtracting(records.map(\.call)).subtracting(waiting)
  }

  // MARK: the edge

  /// A call of the carrier: the edge sends it to a node, and follows its 302 once. `node` is the one that finally has it, once
  /// that is known.
  final class EdgeCall {
    var node: Int
    var leg: LegID
    var hops: [Int]
    init(_ node: Int, _ leg: LegID) { (self.node, self.leg, hops) = (node, leg, [node]) }
  }

  func call(at index: Int) -> EdgeCall {
    worlds[index].now = now
    return EdgeCall(index, worlds[index].carrier.call())
  }

  /// Runs for a time; a 302 that arrived meanwhile is followed.
  func run(_ duration: Duration, following call: EdgeCall) {
    let end = now + duration
    while now < end {
      run(min(.milliseconds(5), end - now))
      guard isAlive(call.node), worlds[call.node].carrier.final(call.leg) == 302, call.hops.count < 3,
        let contact = worlds[call.node].carrier.redirect,
        let target = worlds.indices.first(where: { contact.contains("@10.0.0.\($0 + 1):5060") })
      else { continue }
      #expect(contact.contains("x-steered"), "\(contact)")
      worlds[target].now = now
      (call.node, call.leg) = (target, worlds[target].carrier.call(World.number + ";x-steered"))
      call.hops.append(target)
    }
  }

  func final(_ call: EdgeCall) -> Int? { worlds[call.node].carrier.final(call.leg) }

  // MARK: what holds after every run

  /// Over all nodes: one winner, one accepted push for each (call, device), at most one terminal message for each, one final
  /// response of each INVITE, one record for each call, and INVITEs = records + refusals and redirects.
  func check(_ location: SourceLocation = #_sourceLocation) {
    let all = worlds + before
    let calls = Set(records.map(\.call))
    #expect(calls.count == records.count, "two records of one call", sourceLocation: location)
    for call in calls {
      let sockets = all.flatMap(\.apps)
      #expect(sockets.count { $0.won.contains(call) } <= 1, "two winners", sourceLocation: location)
      for device in Set(sockets.map(\.device)) {
        // An end that was not acked before its socket broke is sent again. The reaper does not know which devices have received
        // it: a device ignores a `call.gone` for a call that is over.
        var terminals = sockets.filter { $0.device == device }.flatMap { $0.terminals[call] ?? [] }
        if terminals.contains(where: { !$0.hasPrefix("call.gone") }) { terminals.removeAll { $0.hasPrefix("call.gone") } }
        let reasons = Set(terminals.map { $0.split(separator: " ").last ?? "" })
        #expect(reasons.count <= 1, "\(device): \(terminals)", sourceLocation: location)
        let pushes = all.flatMap(\.pushes).count { $0.key.call == call && $0.key.device == device }
        #expect(pushes <= 1, "\(device) was pushed to \(pushes) times", sourceLocation: location)
      }
    }
    #expect(all.flatMap { $0.finals.values }.allSatisfy { $0.count == 1 }, "two final responses", sourceLocation: location)
    #expect(all.allSatisfy { $0.machine.statistics.answeredWithoutMedia == 0 }, sourceLocation: location)
  }

  /// No device shows a call that is over: a device that was offered it on an open socket has received its end. A device whose
  /// socket broke ends it by itself, by the ring deadline or by silence (docs/reference/protocol.md).
  func checkNoDeviceShows(_ seed: UInt64 = 0, _ location: SourceLocation = #_sourceLocation) {
    let over = Set(records.map(\.call))
    for index in worlds.indices where isAlive(index) {
      for app in worlds[index].apps where app.isOpen {
        for call in app.offered where over.contains(call) {
          let received = sockets(app.device).contains { $0.terminals[call] != nil }
          #expect(
            received, "seed \(seed): \(app.device) at \(index) shows \(call): \(app.received(call))", sourceLocation: location)
        }
      }
    }
  }

  /// The same, and no device shows a call that ended 46 s ago; no state of any call is left, also in the shared store.
  func checkEnd(_ location: SourceLocation = #_sourceLocation) {
    run(.seconds(50))
    check(location)
    checkNoDeviceShows(0, location)
    for index in worlds.indices where isAlive(index) {
      #expect(worlds[index].machine.summaries.isEmpty, "calls are left at \(index)", sourceLocation: location)
    }
    let received = (worlds + before).map { $0.receivedINVITEs.count }.reduce(0, +)
    let refused = (worlds + before).flatMap(\.refusals).count { $0.direction == .incoming }
    let incoming = records.count { $0.direction == .incoming }
    #expect(
      received == incoming + refused, "\(received) INVITEs, \(incoming) records, \(refused) refusals", sourceLocation: location)
  }
}
