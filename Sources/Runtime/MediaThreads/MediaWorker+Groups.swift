import TrunklineMediaSession

// Calls whose parties hear each other: one mixer for each group, made with its first member and freed with its last.

extension MediaWorker {
  /// Moves the session of `slot` to its last reported group. A member that does not fit hears its app alone: control keeps groups
  /// within their limit, so each fits.
  mutating func joinGroup(_ slot: Int) {
    guard let entry = entries[slot], entry.pointee.session.mediaGroup != entry.pointee.group?.id else { return }
    leaveGroup(slot)
    guard let id = entry.pointee.session.mediaGroup else { return }
    let mixer: UnsafeMutablePointer<GroupMixer>
    if let known = mixers[id] {
      mixer = known
    } else {
      mixer = .allocate(capacity: 1)
      mixer.initialize(to: GroupMixer())
      mixers[id] = mixer
    }
    guard let member = mixer.pointee.join() else { return }
    entry.pointee.group = (id, mixer, member)
  }

  mutating func leaveGroup(_ slot: Int) {
    guard let entry = entries[slot], let group = entry.pointee.group else { return }
    entry.pointee.group = nil
    group.mixer.pointee.leave(group.member)
    guard group.mixer.pointee.isEmpty else { return }
    mixers[group.id] = nil
    group.mixer.deinitialize(count: 1)
    group.mixer.deallocate()
  }
}
