import Testing
import TrunklineBytes

@testable import Cluster

@Suite struct TaskLeadershipTests {
  private let trunk = SingleTask.trunk("carrier")

  /// Leads the task, asked for at 1 s and granted at 1.1 s.
  private func leading(_ task: SingleTask) -> (tasks: TaskLeadership, step: Step) {
    var tasks = TaskLeadership(us, length: .seconds(10))
    var step = Step.at(1)
    tasks.set(["carrier"], isUp: true, &step)
    tasks.due(task, isHolderGone: false, &step)
    step = Step.at(1.1, after: step)
    _ = tasks.answered(task, isGranted: true, holder: us, sent: seconds(1), mayLead: true, isHolderFit: true, &step)
    return (tasks, step)
  }

  @Test func `a task is asked for once until the reply, and led from the sending of its request`() {
    var tasks = TaskLeadership(us, length: .seconds(10))
    var step = Step.at(1)
    tasks.due(.reaper, isHolderGone: false, &step)
    tasks.due(.reaper, isHolderGone: false, &step)
    #expect(step.sent == [.lead(.reaper, us)] && step.due == [.task(.reaper)])
    step = Step.at(2, after: step)
    #expect(tasks.answered(.reaper, isGranted: true, holder: us, sent: seconds(1), mayLead: true, isHolderFit: true, &step))
    #expect(step.others.count == 1)
    #expect(tasks.leads(.reaper, at: seconds(10.9)) && !tasks.leads(.reaper, at: seconds(11)))
    // the same answer again: nothing is new
    #expect(!tasks.answered(.reaper, isGranted: true, holder: us, sent: seconds(1), mayLead: true, isHolderFit: true, &step))
    #expect(step.others.count == 1)
  }

  @Test func `an answer that comes too late, to a node that drains, or for a task that is not wanted leads nothing`() {
    var tasks = TaskLeadership(us, length: .seconds(10))
    var step = Step.at(20)
    #expect(!tasks.answered(.reaper, isGranted: true, holder: us, sent: seconds(1), mayLead: true, isHolderFit: true, &step))
    #expect(!tasks.answered(.reaper, isGranted: true, holder: us, sent: seconds(19), mayLead: false, isHolderFit: true, &step))
    #expect(!tasks.answered(trunk, isGranted: true, holder: us, sent: seconds(19), mayLead: true, isHolderFit: true, &step))
    tasks.due(trunk, isHolderGone: false, &step)
    tasks.failed(trunk)
    #expect(tasks.leads.isEmpty && step.actions.isEmpty)
  }

  @Test func `without any reply the leadership ends with its time`() {
    var (tasks, step) = leading(.reaper)
    step = Step.at(11, after: step)
    tasks.due(.reaper, isHolderGone: false, &step)
    #expect(!tasks.leads(.reaper) && step.others.count == 1 && step.sent == [.lead(.reaper, us)])
  }

  @Test func `the end of the lease ends the reaper, and a trunk's leader continues`() {
    for task in [SingleTask.reaper, trunk] {
      var (tasks, step) = leading(task)
      step = Step.at(2, after: step)
      tasks.leaseEnded(&step)
      tasks.leaseEnded(&step)
      #expect(tasks.leads(task) == (task == trunk) && step.others.count == (task == trunk ? 0 : 1))
      #expect(step.due == (task == trunk ? [.task(trunk)] : []))
    }
  }

  @Test func `a holder without a lease is deposed once, and asked for again`() {
    var tasks = TaskLeadership(us, length: .seconds(10))
    var step = Step.at(1)
    _ = tasks.answered(.reaper, isGranted: false, holder: other, sent: seconds(1), mayLead: true, isHolderFit: true, &step)
    #expect(tasks.holder(of: .reaper) == other)
    tasks.holdersMayBeGone(isFit: { $0 == other }, &step)
    step = Step.at(2, after: step)
    tasks.due(.reaper, isHolderGone: true, &step)
    tasks.due(.reaper, isHolderGone: true, &step)
    #expect(step.sent == [.resign(.reaper, other), .lead(.reaper, us)])
  }

  @Test func `a task that is wanted no longer is resigned, also while its request waits`() {
    var (tasks, step) = leading(trunk)
    step = Step.at(2, after: step)
    tasks.set([], isUp: true, &step)
    tasks.set([], isUp: true, &step)
    #expect(step.sent == [.resign(trunk, us)] && step.others.count == 1 && tasks.leads.isEmpty)
    tasks.due(.reaper, isHolderGone: false, &step)
    tasks.resignAll(&step)
    #expect(step.sent.last == .resign(.reaper, us))
  }

  @Test func `after a new connection a task is asked for again`() {
    var tasks = TaskLeadership(us, length: .seconds(10))
    var step = Step.at(1)
    tasks.due(.reaper, isHolderGone: false, &step)
    tasks.reconnected()
    tasks.due(.reaper, isHolderGone: false, &step)
    #expect(step.sent.count == 2)
  }
}
