import MediaSession

// Calls that hear each other: one mixer for each group, made with its first member and freed with its last.

extension MediaWorker {
  /// The session of `slot` goes to the group that it was told of last. One without a free slot gets its app's audio only: control keeps
  /// groups within their limit, so there is one.
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
