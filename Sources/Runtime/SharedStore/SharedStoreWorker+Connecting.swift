import Cluster
import RESP
import TrunklineBytes
import TrunklinePlatform

// Finds the primaries, and greets them.

extension SharedStoreWorker {
  /// A primary, and a tag in one of its slots.
  struct Primary {
    var address: RedisServers.Address
    var tag: String
  }

  func connect() {
    switch settings.servers {
    case .redis(let address): greet([Primary(address: address, tag: SharedStoreKeys.nodes)], slots: [])
    case .sentinels(let addresses, let name): askSentinel(Array(addresses.prefix(Limits.addresses)), name, asked: 0)
    case .cluster(let addresses): askCluster(Array(addresses.prefix(Limits.addresses)), asked: 0)
    }
  }

  // MARK: Sentinel

  private func askSentinel(_ addresses: [RedisServers.Address], _ name: String, asked: Int, last: String = "") {
    guard asked < addresses.count else { return fail("no Sentinel returned the primary; \(last)") }
    let address = addresses[(firstAddress + asked) % addresses.count]
    let question = RESPCommand("SENTINEL", "get-master-addr-by-name", name)
    let mine = attempt
    // Sentinels may have the same password, or none: their answer to it does not matter.
    open(address, greeting.login + [question], expected: greeting.login.count + 1, within: Limits.asking) { [weak self] outcome in
      guard let self, isPresent(mine) else { return }
      var why = ""
      switch outcome {
      case .failed(let text): why = "\(address): \(text)"
      case .answered(let link, let replies):
        link.close()
        let parts = replies.last?.elements ?? []
        if parts.count == 2, let host = parts[0].text, let port = parts[1].text.flatMap({ UInt16($0) }) {
          return greet([Primary(address: RedisServers.Address(host, port), tag: SharedStoreKeys.nodes)], slots: [])
        }
        why = if case .error(let text)? = replies.last { "\(address): \(text)" } else { "\(address) does not know \(name)" }
      }
      askSentinel(addresses, name, asked: asked + 1, last: why)
    }
  }

  // MARK: Redis Cluster

  private func askCluster(_ addresses: [RedisServers.Address], asked: Int, last: String = "") {
    guard asked < addresses.count else { return fail("no node of the Redis Cluster answers; \(last)") }
    let address = addresses[(firstAddress + asked) % addresses.count]
    let mine = attempt
    let expected = greeting.login.count + 1
    open(address, greeting.login + [RESPCommand("CLUSTER", "SLOTS")], expected: expected, within: Limits.asking) {
      [weak self] outcome in
      guard let self, isPresent(mine) else { return }
      var why = ""
      switch outcome {
      case .failed(let text): why = "\(address): \(text)"
      case .answered(let link, let replies):
        link.close()
        if let problem = greeting.problem(ofLogin: replies) {
          why = "\(address): \(problem.text)"
        } else if case .error(let text)? = replies.last {
          why =
            text.contains("cluster support disabled")
            ? "\(address) is no Redis Cluster: write shared_store: { redis: \(address) }" : "\(address): \(text)"
        } else if let map = Self.map(replies.last?.elements ?? [], from: address) {
          return greet(map.primaries, slots: map.slots)
        } else {
          why = "\(address): not every slot has a primary"
        }
      }
      askCluster(addresses, asked: asked + 1, last: why)
    }
  }

  /// `CLUSTER SLOTS` → primaries, and the primary of each slot; nil if a slot has none.
  static func map(_ ranges: [RESPValue], from asked: RedisServers.Address) -> (primaries: [Primary], slots: [UInt16])? {
    var slots = [UInt16](repeating: .max, count: SharedStoreKeys.slots)
    var addresses: [RedisServers.Address] = []
    for range in ranges {
      guard let parts = range.elements, parts.count >= 3, let first = parts[0].number, let last = parts[1].number,
        0 <= first, first <= last, last < SharedStoreKeys.slots, let primary = parts[2].elements, primary.count >= 2,
        let port = primary[1].number.flatMap({ UInt16(exactly: $0) })
      else { return nil }
      // a node that does not know its own address leaves it empty
      let host = primary[0].text.flatMap { $0.isEmpty || $0 == "?" ? nil : $0 } ?? asked.host
      let address = RedisServers.Address(host, port)
      let index = addresses.firstIndex(of: address) ?? addresses.count
      if index == addresses.count { addresses.append(address) }
      guard addresses.count <= Limits.shards else { return nil }
      for slot in first...last { slots[Int(slot)] = UInt16(index) }
    }
    guard !slots.contains(.max) else { return nil }
    var tags = [String?](repeating: nil, count: addresses.count)
    var number = 0
    while number < SharedStoreKeys.slots, tags.contains(nil) {
      let tag = "m\(number)"
      let index = Int(slots[SharedStoreKeys.slot(tag)])
      if tags[index] == nil { tags[index] = tag }
      number += 1
    }
    let primaries = zip(addresses, tags).compactMap { address, tag in tag.map { Primary(address: address, tag: $0) } }
    return primaries.count == addresses.count ? (primaries, slots) : nil
  }

  // MARK: greeting

  private func greet(_ primaries: [Primary], slots: [UInt16]) {
    self.slots = slots
    shards = primaries.map { SharedStoreShard($0.address, tag: $0.tag, at: loop.now) }
    missing = shards.count + 1
    for shard in shards { greet(shard, isCluster: !slots.isEmpty) }
    subscribe(primaries[0].address)
  }

  private func greet(_ shard: SharedStoreShard, isCluster: Bool) {
    let mine = attempt
    let marker = keys.key(shard.tag, "shared-store")
    let commands = greeting.commands(
      marker: marker, trial: keys.key(shard.tag, "trial:" + SharedStoreKeys.escaped(node.description)), channel: keys.trial,
      fresh: Identifier(random: random).description)
    open(shard.address, commands, expected: commands.count, within: Limits.greeting) { [weak self] outcome in
      guard let self, isPresent(mine) else { return }
      switch outcome {
      case .failed(let why): fail("\(shard.address): \(why)")
      case .answered(let link, let replies):
        do throws(SharedStoreGreeting.Problem) {
          let found = try greeting.found(replies, isCluster: isCluster)
          if let warning = found.warning { warn(shard.address, warning) }
          digests = found.digests
          if let before = markers[marker], before != found.marker { wasFlushed = true }
          markers[marker] = found.marker
          shard.opened(link, at: loop.now)
          link.handler = { [weak self, unowned shard] event in
            switch event {
            case .value(let value): self?.replied(value, shard)
            case .closed(let why): self?.fail("\(shard.address): \(why)")
            }
          }
          oneMoreIsThere()
        } catch {
          link.close()
          fail("\(shard.address): \(error.text)")
        }
      }
    }
  }

  private func subscribe(_ address: RedisServers.Address) {
    let mine = attempt
    let channels = [keys.channel(to: node.node), keys.everybody]
    let commands = greeting.subscription(channels)
    let expected = commands.count - 1 + channels.count
    open(address, commands, expected: expected, bounds: RESP.Limits.message, within: Limits.greeting) { [weak self] outcome in
      guard let self, isPresent(mine) else { return }
      switch outcome {
      case .failed(let why): fail("\(address): \(why)")
      case .answered(let link, let replies):
        if case .error(let why)? = replies.last {
          link.close()
          return fail("\(address): SUBSCRIBE: \(why)")
        }
        subscription = SharedStoreSubscription(link, at: loop.now)
        link.handler = { [weak self] event in
          switch event {
          case .value(let value): self?.received(value)
          case .closed(let why): self?.fail("\(address): \(why)")
          }
        }
        oneMoreIsThere()
      }
    }
  }

  private func oneMoreIsThere() {
    missing -= 1
    if missing == 0 { becomeUp() }
  }

  private func warn(_ address: RedisServers.Address, _ text: String) {
    logger.warning("shared-store", metadata: ["address": "\(address)", "why": "\(text)"])
  }
}
