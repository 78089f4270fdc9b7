import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// Two user agents with a network between them that loses, delays, doubles and reorders, on virtual time. One seed is one run.
struct LossyNetwork {
  struct Packet {
    var at: Instant
    var order: Int
    var to: Int
    var bytes: [UInt8]
  }

  var agents: [UserAgent]
  var now = Instant(nanoseconds: 1_000_000_000)
  var log: [[(at: Int64, event: UserAgent.Event)]] = [[], []]
  /// Chance of loss in percent, and the one-way delay in milliseconds.
  var loss: Int
  var delay: ClosedRange<Int>
  private var random: SplitMix64
  private var packets: [Packet] = []
  private var actions: [(at: Instant, order: Int, agent: Int, command: UserAgent.Command)] = []
  private var updates: [(at: Instant, order: Int, agent: Int)] = []
  private var order = 0
  private let addresses = [gatewayAddress, carrierAddress]
  /// What an agent does when something happens: commands with a delay in milliseconds.
  var react: (Int, UserAgent.Event) -> [(afterMs: Int, command: UserAgent.Command)] = { _, _ in [] }

  init(seed: UInt64, loss: Int = 30, delay: ClosedRange<Int> = 5...60) {
    agents = [UserAgent(random: .seeded(seed)), UserAgent(random: .seeded(seed &+ 1_000_003))]
    random = SplitMix64(seed: seed ^ 0x5eed)
    (self.loss, self.delay) = (loss, delay)
  }

  func flow(of agent: Int) -> Flow { Flow(transport: .udp, local: addresses[agent], remote: addresses[1 - agent]) }

  mutating func schedule(_ agent: Int, afterMs: Int, _ command: UserAgent.Command) {
    order += 1
    actions.append((now + .milliseconds(afterMs), order, agent, command))
  }

  /// An UPDATE with an offer from an agent's end of its early dialog, retransmitted like any request. The agent itself does not
  /// know of it.
  mutating func scheduleUpdate(_ agent: Int, afterMs: Int) {
    order += 1
    updates.append((now + .milliseconds(afterMs), order, agent))
  }

  private mutating func sendUpdate(_ agent: Int) {
    guard let leg = agents[agent].legs.all.first else { return }
    let fork = leg.early.tags.first
    guard fork != nil || !leg.dialog.remoteTag.isEmpty, let dialog = agents[agent].legs[leg.id]?.value.nextRequest(fork: fork)
    else { return }
    order += 1
    let content = RequestContent(body: offer, refreshesTarget: true)
    let bytes = agents[agent].request(
      .update, in: dialog, sequence: dialog.localSequence, branch: "z9hG4bKupdate\(order)", base: leg.flow, content
    ).bytes
    for ms in [0, 500, 1_500, 3_500, 7_500] { transmit(bytes, from: agent, afterMs: ms) }
  }

  /// Runs until no packet is on its way, no timer waits and no action is left, or until the time limit; true if all came to rest.
  mutating func run(limit: Duration = .seconds(600)) -> Bool {
    let end = now + limit
    while true {
      let packet = packets.indices.min { (packets[$0].at, packets[$0].order) < (packets[$1].at, packets[$1].order) }
      let action = actions.indices.min { (actions[$0].at, actions[$0].order) < (actions[$1].at, actions[$1].order) }
      let update = updates.indices.min { (updates[$0].at, updates[$0].order) < (updates[$1].at, updates[$1].order) }
      let times = [
        packet.map { packets[$0].at }, action.map { actions[$0].at }, update.map { updates[$0].at }, agents[0].nextDeadline,
        agents[1].nextDeadline,
      ]
      guard let next = times.compactMap({ $0 }).min() else { return true }
      guard next <= end else { return false }
      now = max(now, next)
      if let packet, packets[packet].at == next {
        let arrived = packets.remove(at: packet)
        handle(arrived.to, .received(arrived.bytes, flow(of: arrived.to), trunk: "peer"))
      } else if let update, updates[update].at == next {
        sendUpdate(updates.remove(at: update).agent)
      } else if let action, actions[action].at == next {
        let due = actions.remove(at: action)
        handle(due.agent, .command(due.command))
      } else {
        handle(agents[0].nextDeadline == next ? 0 : 1, .timer)
      }
    }
  }

  private mutating func handle(_ agent: Int, _ input: UserAgent.Input) {
    var output = UserAgent.Output()
    agents[agent].handle(input, at: now, into: &output)
    // a deadline that stays in the past stops the loop that waits for it, or makes it spin
    if case .timer = input, let next = agents[agent].nextDeadline, next <= now { Issue.record("it waits for \(next) at \(now)") }
    for message in output.messages { transmit(message.bytes, from: agent) }
    for event in output.events {
      log[agent].append((now.nanoseconds / 1_000_000, event))
      for (after, command) in react(agent, event) { schedule(agent, afterMs: after, command) }
    }
  }

  private mutating func transmit(_ bytes: [UInt8], from agent: Int, afterMs: Int = 0) {
    let copies = random.next() % 100 < 5 ? 2 : 1
    for _ in 0..<copies where random.next() % 100 >= UInt64(loss) {
      order += 1
      let ms = afterMs + delay.lowerBound + Int(random.next() % UInt64(delay.count))
      packets.append(Packet(at: now + .milliseconds(ms), order: order, to: 1 - agent, bytes: bytes))
    }
  }

  func names(_ agent: Int) -> [String] { log[agent].map { $0.event.name } }

  /// Whether every table of an agent is empty.
  func isEmpty(_ agent: Int) -> Bool {
    let a = agents[agent]
    return a.legs.isEmpty && a.servers.isEmpty && a.clients.isEmpty && a.step.timers.count == 0
  }
}
