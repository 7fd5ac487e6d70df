"""What the data sets are, where they come from, and under which terms."""

BENCHMARK_PREDICTION_SOURCE = """\
Source: socialfoundations/benchmark-prediction at commit {commit}, data/scores/.
Licence: MIT.
Citation: Zhang, G., Dorner, F. E., Hardt, M. (2025). How Benchmark Prediction from Fewer Data
Misses the Mark. arXiv:2506.07673.
"""

HELM_LITE = """\
HELM Lite: {scenarios}
======================
Correctness (0 or 1) of 83 language models; no cell is missing. Rows are the same models in every
scenario; columns are the instances in the order of HELM's run files.

{source}Benchmark: Liang, P. et al. (2023). Holistic Evaluation of Language Models. TMLR.
Subscenarios of mmlu and math are inferred from the sizes of the public data sets.
Model names: {names}
Scores: mean over scenarios of the item mean, subscenarios counting equally.
Dropped: nothing.
"""

OPEN_LLM = """\
Open LLM Leaderboard: {scenarios}
=================================
Correctness (0 or 1); no cell is missing. Columns are in the order of lm-evaluation-harness's
doc_id (metrics: arc_challenge acc_norm, ifeval prompt_level_strict_acc, musr acc_norm).
ifeval and musr have the same 448 rows, arc_challenge has 218 of its own.

{source}Benchmark: Fourrier, C. et al. (2024). Open LLM Leaderboard v2. Hugging Face.
Repeated names: the same model submitted twice. All rows are kept; the second is named "name#2",
and the column duplicate_of of `models` says which model it repeats: a split by row leaks unless
it keeps them together.
organisation is the part of the name before the slash, NA where there is none.
Dates (first day on the public leaderboard, derived from felipemaiapolo/sloth at 6dc6bb3e):
{dates}
Scores: mean over scenarios of the item mean, subscenarios counting equally.
Dropped: nothing.
"""

GLUE = """\
GLUE: {scenarios}
=================
Correctness (0 or 1) of 87 models on the validation split; no cell is missing. Many models give
the same row as another one.

{source}Benchmark: Wang, A. et al. (2019). GLUE: A Multi-Task Benchmark and Analysis Platform for
Natural Language Understanding. ICLR.
Model names: not published; "model_00" is the first row. That a row is the same model in rte, mrpc
and sst2 is not stated by the source either, only likely: the row means correlate at 0.45 to 0.56,
more than under any of 10,000 random orders of the rows. Concatenated scenarios rest on that.
Scores: mean over scenarios of the item mean.
Dropped: nothing.
"""

ALPACA_EVAL = """\
AlpacaEval 2.0
==============
The judge's weighted preference for each of 58 language models over the baseline
gpt4_1106_preview on 805 instructions: a win probability in [0, 1], rounded to six decimals.
10 cells are missing: the files hold no preference for them.

Source: tatsu-lab/alpaca_eval at commit {commit},
results/*/weighted_alpaca_eval_gpt4_turbo/annotations.json; value = preference - 1.
Licence: Apache-2.0.
Citation: Dubois, Y., Galambosi, B., Liang, P., Hashimoto, T. B. (2024). Length-Controlled
AlpacaEval: A Simple Way to Debias Automatic Evaluators. arXiv:2404.04475.
Item ids are "data set/position", the position counted through the whole file of
gpt4_1106_preview. There is one scenario, without subscenarios.
Dates (the day on which the model was added to the repository):
{dates}
NullModel is a constant answer that fools the judge.
Scores: item mean over the cells that are not missing; times 100, the leaderboard's win rate up to
the rounding of the cells.
Dropped: models whose annotations exceed 4 MiB.
"""

FROM_CACHE = "from {name} in the cache."
NOT_IN_CACHE = "{fallback}, because {name} is not in the cache."
