"""The loop: observe -> diagnose -> plan -> gate -> approve -> execute -> verify -> remember.

One invocation is one cycle, from end to end. Nothing waits inside it: a question to a person is a row in the journal.
What a person allowed with an envelope needs no further approval.
"""

from typing import Literal, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.nodes import Nodes
from agent.state import CycleState

CONFIG: RunnableConfig = {"recursion_limit": 40}
Graph: TypeAlias = CompiledStateGraph[CycleState, None, CycleState, CycleState]


def build_graph(nodes: Nodes) -> Graph:
    """The compiled loop over `nodes`."""

    def after_diagnose(state: CycleState) -> Literal["plan", "verify"]:
        return "plan" if nodes.may_plan(state) else "verify"

    def after_plan(state: CycleState) -> Literal["gate", "execute"]:
        return "gate" if state["plan"].action is not None else "execute"

    def after_gate(state: CycleState) -> Literal["approve", "execute"]:
        return "execute" if nodes.is_move(state) else "approve"

    graph = StateGraph(CycleState)
    graph.add_node("observe", nodes.observe)
    graph.add_node("diagnose", nodes.diagnose)
    graph.add_node("plan", nodes.plan)
    graph.add_node("gate", nodes.gate)
    graph.add_node("approve", nodes.approve)
    graph.add_node("execute", nodes.execute)
    graph.add_node("verify", nodes.verify)
    graph.add_node("remember", nodes.remember)
    graph.add_edge(START, "observe")
    graph.add_edge("observe", "diagnose")
    graph.add_conditional_edges("diagnose", after_diagnose)
    graph.add_conditional_edges("plan", after_plan)
    graph.add_conditional_edges("gate", after_gate)
    graph.add_edge("approve", "execute")
    graph.add_edge("execute", "verify")
    graph.add_edge("verify", "remember")
    graph.add_edge("remember", END)
    return graph.compile()


def run_cycle(graph: Graph, state: CycleState) -> CycleState:
    """What the cycle that begins with `state` knows at its end."""
    end: CycleState = graph.invoke(state, CONFIG)  # type: ignore[assignment]
    return end
