import CTrunklineLinux
import Glibc
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineRTP
import TrunklineSTUN

extension MediaWorker {
  // MARK: Commands

  mutating func drainWork() {
    work.removeAll(keepingCapacity: true)
    shared.mailbox.drain(into: &work, limit: Limits.commandsPerStep)
    let batch = work
    work.removeAll(keepingCapacity: true)
    for item in batch {
      switch item {
      case .open(let id, let sockets): open(id, sockets)
      case .move(let id, let sockets): move(id, sockets)
      case .command(let command): self.command(command)
      case .listen(let socket): listen(socket)
      case .retire(let address):
        apps.retire(address, after: opened)
        closeRetired()
      case .handshake(let result): handshake(result)
      case .stop: isRunning = false
      }
      catchUp()
    }
  }

  /// Keeps ticks in time while many calls begin and end at once.
  private mutating func catchUp() {
    now = MonotonicClock.now()
    runTicks()
  }

  private mutating func open(_ id: MediaSessionID, _ sockets: TrunkSockets) {
    guard slotOf[id] == nil, let slot = freeSlots.popLast() else {
      shared.eventHandler(.closed(id, MediaStatistics()))
      return
    }
    let setup = MediaSessionSetup(
      trunkRoute: PacketRoute(raw: sockets.rtp.fd), trunkControlRoute: PacketRoute(raw: sockets.rtcp.fd), random: .system,
      wallClockOffset: shared.wallClockOffset, opusComplexity: shared.opusComplexity)
    let entry = UnsafeMutablePointer<SessionEntry>.allocate(capacity: 1)
    entry.initialize(
      to: SessionEntry(
        MediaSession(id: id, setup: setup), sockets, serial: opened, tickSlots: ticks.add(slot, at: now)))
    opened += 1
    entry.pointee.session.limitComplexity(to: ceiling)
    entries[slot] = entry
    slotOf[id] = slot
    shared.metrics.sessions.add(1)
    do throws(SystemError) {
      try watch(sockets.rtp.fd, as: .trunk, index: slot)
      try watch(sockets.rtcp.fd, as: .trunkControl, index: slot)
    } catch {
      remove(slot)
      shared.eventHandler(.closed(id, MediaStatistics()))
    }
  }

  /// Datagrams left in the old sockets are lost: nothing more arrives at their address.
  private mutating func move(_ id: MediaSessionID, _ sockets: TrunkSockets) {
    guard let slot = slotOf[id], let entry = entries[slot] else { return }
    flush()
    do throws(SystemError) {
      try watch(sockets.rtp.fd, as: .trunk, index: slot)
      try watch(sockets.rtcp.fd, as: .trunkControl, index: slot)
    } catch { return }  // The call ends like one whose address was removed and that has no other.
    _ = epoll_ctl(epoll, EPOLL_CTL_DEL, entry.pointee.trunk, nil)
    _ = epoll_ctl(epoll, EPOLL_CTL_DEL, entry.pointee.control, nil)
    entry.pointee.move(to: sockets)
  }

  mutating func command(_ command: MediaCommand) {
    guard let slot = slotOf[command.session], let entry = entries[slot] else { return shared.metrics.unknownSession.increment() }
    entry.pointee.session.handle(command, at: now, into: &output)
    switch command {
    case .addAppLeg(_, let leg, _), .setAppRemote(_, let leg, _, _, _): refreshUfrags(slot, leg)
    case .removeAppLeg: pruneUfrags(slot)
    case .connect, .openEarly, .bridge, .play, .stream: countRunning(slot)
    case .group: joinGroup(slot)
    default: break
    }
    afterSession(slot)
  }

  /// Passes the trunk audio of one half of a diverted call to the other. HOT
  mutating func passOn(_ slot: Int, to other: MediaSessionID) {
    guard let target = slotOf[other], target != slot, let from = entries[slot], let to = entries[target] else { return }
    to.pointee.session.playBridged(from.pointee.session.bridgedFrame, at: now, into: &output)
    afterSession(target)
  }

  private mutating func handshake(_ result: HandshakeResult) {
    guard let slot = slotOf[result.key.session], let entry = entries[slot] else { return }
    entry.pointee.session.handle(result, at: now, into: &output)
    afterSession(slot)
  }

  private mutating func refreshUfrags(_ slot: Int, _ leg: AppLegID) {
    guard let entry = entries[slot] else { return }
    for ufrag in entry.pointee.session.localUfrags(of: leg) {
      let key = UfragKey(ufrag.utf8)
      if legOfUfrag.updateValue((slot, leg), forKey: key) == nil { entry.pointee.ufrags.append(key) }
    }
  }

  private mutating func pruneUfrags(_ slot: Int) {
    guard let entry = entries[slot] else { return }
    for key in entry.pointee.ufrags {
      guard let owner = legOfUfrag[key], owner.slot == slot, entry.pointee.session.index(of: owner.leg) == nil else { continue }
      legOfUfrag[key] = nil
    }
    entry.pointee.ufrags.removeAll { legOfUfrag[$0]?.slot != slot }
    forgetSources(slot) { entry.pointee.session.index(of: $0) == nil }
  }

  /// Frees a session: its sockets, ufrags and addresses.
  mutating func remove(_ slot: Int) {
    guard let entry = entries[slot] else { return }
    flush()
    leaveGroup(slot)
    _ = epoll_ctl(epoll, EPOLL_CTL_DEL, entry.pointee.trunk, nil)
    _ = epoll_ctl(epoll, EPOLL_CTL_DEL, entry.pointee.control, nil)
    for key in entry.pointee.ufrags where legOfUfrag[key]?.slot == slot { legOfUfrag[key] = nil }
    for (_, ssrc) in entry.pointee.sources { legOfSource[ssrc] = nil }
    for (route, address) in entry.pointee.addresses { addresses.remove(address, route, of: Int32(slot)) }
    ticks.remove(slot, from: entry.pointee.tickSlots)
    slotOf[entry.pointee.session.id] = nil
    entries[slot] = nil
    if entry.pointee.isRunning { running -= 1 }
    entry.deinitialize(count: 1)
    entry.deallocate()
    freeSlots.append(slot)
    shared.sessions.add(-1)
    // An idle thread sleeps: no later check would report that there is room again.
    if slotOf.isEmpty { checkLoad() }
    shared.metrics.sessions.add(-1)
    shared.metrics.appAddresses.set(Int64(addresses.count))
    closeRetired()
  }

  // MARK: App sockets

  private mutating func listen(_ socket: UDPSocket) {
    // A socket that the kernel cannot watch for lack of memory is as if behind a firewall: its candidates fail, the others work.
    try? watch(socket.fd, as: .app, index: apps.add(socket))
  }

  /// Closes the sockets of addresses that were removed for good, once no session is left that was offered them.
  private mutating func closeRetired() {
    guard apps.hasRetired else { return }
    var oldest = opened
    for slot in 0..<Limits.sessionsPerThread { if let entry = entries[slot] { oldest = min(oldest, entry.pointee.serial) } }
    flush()
    for fd in apps.over(oldest: oldest) { _ = epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nil) }
    apps.close(oldest: oldest)
  }

  // MARK: Datagrams

  /// HOT
  mutating func receiveTrunk(_ slot: Int, isControl: Bool) {
    guard slot < Limits.sessionsPerThread, let entry = entries[slot] else { return }
    let fd = isControl ? entry.pointee.control : entry.pointee.trunk
    for _ in 0..<Limits.batchesPerStep {
      guard receiving.receive(on: fd, limit: Limits.datagramsPerTrunkBatch) else { return }
      counters.trunkReceived.increment(by: UInt64(receiving.count))
      for index in 0..<receiving.count {
        guard let bytes = receiving.bytes(index), let source = receiving.source(index) else { continue }
        if isControl {
          entry.pointee.session.handleTrunkControl(bytes, from: source, at: now, into: &output)
        } else {
          entry.pointee.session.handleTrunk(bytes, from: source, at: now, into: &output)
        }
        afterSession(slot)
      }
      flushIfMany()
      guard receiving.isFull else { return }
    }
  }

  /// HOT
  mutating func receiveApp(_ socket: Int) {
    let fd = apps.descriptor(socket)
    guard fd >= 0 else { return }
    for _ in 0..<Limits.batchesPerStep {
      guard receiving.receive(on: fd) else { return }
      counters.appReceived.increment(by: UInt64(receiving.count))
      for index in 0..<receiving.count {
        guard let bytes = receiving.bytes(index), let source = receiving.source(index) else { continue }
        if STUNMessage.isSTUN(UnsafeRawBufferPointer(bytes)) {
          receiveCheck(UnsafeRawBufferPointer(bytes), from: source, on: PacketRoute(raw: fd))
          continue
        }
        // Everything but STUN belongs to the leg that validated the address, or to the one that has its SSRC, whose keys decide.
        guard let owner = addresses.find(source, fd) ?? findSource(UnsafeRawBufferPointer(bytes)),
          let entry = entries[Int(owner.session)]
        else {
          counters.stranger.increment()
          continue
        }
        entry.pointee.session.handleApp(
          bytes, leg: Int(owner.leg), from: source, route: PacketRoute(raw: fd), at: now, into: &output)
        afterSession(Int(owner.session))
      }
      flushIfMany()
      guard receiving.isFull else { return }
    }
  }

  /// The owner of an RTP or RTCP packet by its SSRC: a NAT may give an app another port, and not every app checks it.
  private func findSource(_ packet: UnsafeRawBufferPointer) -> AddressTable.Owner? {
    guard packet.count >= 12, packet[0] >> 6 == 2 else { return nil }
    let isControl = (192..<224).contains(packet[1])
    let ssrc = UInt32(bigEndian: packet.loadUnaligned(fromByteOffset: isControl ? 4 : 8, as: UInt32.self))
    guard let (slot, id) = legOfSource[ssrc], let leg = entries[slot]?.pointee.session.index(of: id) else { return nil }
    return AddressTable.Owner(session: Int32(slot), leg: Int32(leg))
  }

  /// STUN requests belong to the leg whose ufrag they name.
  private mutating func receiveCheck(_ packet: UnsafeRawBufferPointer, from source: SocketAddress, on route: PacketRoute) {
    guard let message = try? STUNMessage(packet), let ufrag = message.recipientUfrag,
      let (slot, id) = legOfUfrag[UfragKey(ufrag)], let entry = entries[slot], let leg = entry.pointee.session.index(of: id)
    else { return counters.stranger.increment() }
    entry.pointee.session.handleApp(message, leg: leg, from: source, route: route, at: now, into: &output)
    afterSession(slot)
  }
}
