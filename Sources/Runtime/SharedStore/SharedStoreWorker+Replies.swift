import Cluster
import RESP
import TrunklineBytes

// Answers and messages.

extension SharedStoreWorker {
  /// The next answer of a shard.
  func replied(_ value: RESPValue, _ shard: SharedStoreShard) {
    guard let waiting = shard.next(at: loop.now) else { return fail("\(shard.address): an answer to no command") }
    guard let id = waiting.id, let command = waiting.command else { return }
    if case .error(let why) = value { return refused(why, waiting: waiting, id: id, command: command, on: shard) }
    metrics.elapsed.record(loop.now - waiting.sent)
    if let again = command.repair(value, from: node) { return send(again, to: shard, id) }
    guard let reply = command.read(value, &leases) else {
      return refuse(id, .refused("an answer that is none to \(command.name)"))
    }
    answered(command)
    metrics.valuesDropped.increment(by: UInt64(reply.droppedValues))
    deliver(.reply(id, .success(reply)))
  }

  private func refused(
    _ why: String, waiting: SharedStoreShard.Waiting, id: SharedStoreRequestID, command: SharedStoreCommand,
    on shard: SharedStoreShard
  ) {
    if why.hasPrefix("NOSCRIPT") {
      // The scripts were flushed: this one is sent as text, and later commands of its slot are sent again after it.
      let later = shard.removeLater(of: command.tag)
      send(command, to: shard, id, asText: true)
      for next in later { if let command = next.command, let id = next.id { send(command, to: shard, id, asText: true) } }
      return
    }
    if why.hasPrefix("MOVED ") || why.hasPrefix("ASK ") { return redirected(why, waiting: waiting, id: id, command: command) }
    let lastFailure = String(decoding: Array(why.utf8.prefix(Limits.errorBytes)), as: UTF8.self)
    if command.isOfLease { leaseRefused(lastFailure) }
    refuse(id, .refused(lastFailure))
    if why.contains("READONLY") { return fail("\(shard.address): it is no longer a primary") }
    if why.hasPrefix("LOADING") { return fail("\(shard.address): Redis is still loading its data") }
    if why.hasPrefix("MASTERDOWN") { return fail("\(shard.address): it is a replica without a primary") }
    if why.hasPrefix("NOAUTH") { return fail("\(shard.address): the password has changed") }
  }

  /// `MOVED 3999 127.0.0.1:6381`: another node has the slot for good; `ASK`: for this command only.
  private func redirected(
    _ why: String, waiting: SharedStoreShard.Waiting, id: SharedStoreRequestID, command: SharedStoreCommand
  ) {
    let parts = why.split(separator: " ")
    guard parts.count >= 3, let slot = Int(parts[1]), (0..<SharedStoreKeys.slots).contains(slot),
      slots.count == SharedStoreKeys.slots,
      waiting.redirections < Limits.redirections, let address = RedisServers.Address(String(parts[2])),
      let index = shards.firstIndex(where: { $0.address == address })
    else {
      refuse(id, .refused(String(why.prefix(Limits.errorBytes))))
      return fail("the Redis Cluster has other nodes now")
    }
    if parts[0] == "MOVED" {
      slots[slot] = UInt16(index)
    } else {
      shards[index].link?.send(RESPCommand("ASKING"))
      shards[index].append(SharedStoreShard.Waiting(sent: loop.now, deadline: loop.now + settings.commandTime))
    }
    send(command, to: shards[index], id, redirections: waiting.redirections + 1)
  }

  /// Something on the subscription.
  func received(_ value: RESPValue) {
    subscription?.received()
    guard let parts = value.elements, parts.count == 3, parts[0].text == "message" else { return }
    metrics.messages.increment()
    guard let content = parts[2].content,
      let stored = ValueCoding.decode(StoredMessage.self, content, limit: Cluster.Limits.messageBytes),
      let (message, from) = stored.value, let channel = parts[1].text, keys.isGenuine(content, at: channel),
      !keys.isOver(stored.end, channel)
    else {
      messagesDropped += 1
      return
    }
    deliver(.message(message, from: from))
  }
}

extension SharedStoreReply {
  fileprivate var droppedValues: Int {
    switch self {
    case .done, .granted, .record, .added, .count, .values, .directories, .directoryHead, .directoryParts, .committed: 0
    case .nodes(_, _, _, let dropped), .entered(_, _, _, _, _, let dropped), .entries(_, _, let dropped),
      .tombstone(_, let dropped), .grantsPut(_, _, let dropped):
      dropped
    case .grants(let page): page.dropped
    case .located(let user): user.dropped
    }
  }
}
