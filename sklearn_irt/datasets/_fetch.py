"""Public response matrices."""

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from sklearn_irt.datasets import _alpaca, _descriptions
from sklearn_irt.datasets._files import PublicFile, get_data_home, read_cached, read_file
from sklearn_irt.datasets._joblib_reader import read_joblib
from sklearn_irt.datasets._tables import benchmark_scores, item_table

PathLike = str | os.PathLike[str]

COMMIT = "2e98c82ea45bed58f54c9e8894ca42e776bf32a9"
SOURCE = f"socialfoundations/benchmark-prediction/{COMMIT}/data/scores"
SHA256 = {
    "arc_challenge": "e8e01a89f6b1018c0ddbae31650852b74280241af85a7d589dafda5406143856",
    "arc_challenge_models": "c58efed473054684f1feb8b6d5fceb0aefb55d92ae7e6fdef3fadc404d0a46b1",
    "commonsense": "35eb2d830faf9695c55ff7c4e62771c5f6f588d9f662d69225f9318a218edf02",
    "gsm": "69b63842a235a99581ad867c778a3ee00a3b871bb6a9ca1c52821d117b6d5848",
    "ifeval": "808c4df4f62e9e9cc290249766b30663496c041ae27590e9ffc66e88899e20b2",
    "ifeval_models": "3c9b5ccb7d250e2239d2ddde9f13521209e96e047e9a2723213359eaae73db4f",
    "math": "1fb748403f9f5be769639c1c39f131576cd68483424034f9049ef4fd5b742862",
    "med_qa": "e9aa206337e19cbf7c5b132248f9806b1c8f7bdd9660527ab697b10471832f7f",
    "mmlu": "d907b7ec000ac3cc76e89d6bed3984cca1c960040b8ddb106b0fe3faab217cfb",
    "mrpc": "214071bc2feb716effe8b96ac2fac3468f8d2e0731ca0e1e1ad94cbd3fc55f53",
    "musr": "a4580672ac844b73ded68308a651ee28f5131f925ea9188b939d68a7ac8158d3",
    "musr_models": "3c9b5ccb7d250e2239d2ddde9f13521209e96e047e9a2723213359eaae73db4f",
    "rte": "01e88e19f0cabeba1d2e72680392f9426b48f5158f28401d9524f8e9a54b2662",
    "sst2": "de8d53d76f020639b15590168497c9f6202d664b70d6eb59a11a1bdc023cb50a",
}
HELM_MODELS = PublicFile(
    "benchmark_prediction/helm_lite_models.csv",
    "2d85fed44242e6930af52c785e7a091c2dec4de8a31eaaf593a8abf1c6b92db9",
)
OPEN_LLM_DATES = PublicFile(
    "benchmark_prediction/model_dates.csv",
    "c0a842114e015b6c3e3596c1ed0c1b0aaa55a4466f50c5ba1af97112466a156b",
)
ALPACA_DATES = PublicFile(
    "alpaca_eval_2/first_listed.csv",
    "be8e84f0f9cabc4359d0d38935ece3e47668af03db9842816528a1b6064dc6d4",
)
HELM_LITE: dict[str, int | Mapping[str, int]] = {
    "commonsense": 500,
    "gsm": 1000,
    "math": {
        "algebra": 135,
        "counting_and_probability": 39,
        "geometry": 38,
        "intermediate_algebra": 52,
        "number_theory": 30,
        "prealgebra": 86,
        "precalculus": 57,
    },
    "med_qa": 1000,
    "mmlu": {
        "abstract_algebra": 111,
        "college_chemistry": 108,
        "computer_security": 111,
        "econometrics": 126,
        "us_foreign_policy": 111,
    },
}
OPEN_LLM: dict[str, int | Mapping[str, int]] = {
    "arc_challenge": 1172,
    "ifeval": 541,
    "musr": {"murder_mysteries": 250, "object_placements": 256, "team_allocation": 250},
}
GLUE: dict[str, int | Mapping[str, int]] = {"rte": 277, "mrpc": 408, "sst2": 872}


def fetch_helm_lite(
    scenario: str | Sequence[str] | None = None,
    *,
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[pd.DataFrame, pd.Series]:
    """Load the correctness of 83 language models on HELM Lite.

    Files are downloaded once from [1]_, verified by their sha256 and cached.

    Parameters
    ----------
    scenario : str, sequence of str or None, default=None
        One or several of "commonsense" (500 items), "gsm" (1,000), "math" (437, level 1, seven
        subscenarios), "med_qa" (1,000) and "mmlu" (567, five subscenarios); None is all five.
        Several are put side by side, in the order given.
    data_home : path, default=None
        The cache folder; see :func:`get_data_home`.
    download_if_missing : bool, default=True
        Whether to download what the cache lacks.
    return_X_y : bool, default=False
        Return ``(responses, scores)`` instead of a Bunch.

    Returns
    -------
    data : Bunch
        Read the item table as ``data["items"]``: ``data.items`` is the method of dict.

        responses : DataFrame of shape (83, m)
            0 or 1, float64; rows by model name, columns by item id ("mmlu/00012").
        items : DataFrame of shape (m, 3)
            Columns item, scenario, subscenario (NA where there is none).
        models : DataFrame of shape (83, 2)
            Columns model, organisation. If `helm_lite_models.csv` is not in the cache, models
            are named "helm_lite_00" and so on, and organisation is NA.
        scores : Series of shape (83,)
            Benchmark score in [0, 1]: mean over scenarios of the item mean, subscenarios
            counting equally.
        DESCR : str
            Source, licence, citation, what is known about the names.
    (responses, scores) : tuple
        If `return_X_y` is True.

    Raises
    ------
    ValueError
        If a scenario is unknown or given twice.
    OSError
        If a file is neither in the cache nor can be downloaded.

    References
    ----------
    .. [1] https://github.com/socialfoundations/benchmark-prediction
    .. [2] Liang, P. et al. (2023). Holistic Evaluation of Language Models. TMLR.

    Examples
    --------
    >>> from sklearn_irt.datasets import fetch_helm_lite
    >>> X, y = fetch_helm_lite("mmlu", return_X_y=True)  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (83, 567)
    """
    names = _scenarios(scenario, HELM_LITE, default=list(HELM_LITE))
    home = get_data_home(data_home)
    values, items = _load_matrices(names, HELM_LITE, home, download_if_missing)
    table = read_cached(HELM_MODELS, home)
    if table is None:
        models = pd.DataFrame(
            {
                "model": [f"helm_lite_{row:02d}" for row in range(len(values))],
                "organisation": pd.array([pd.NA] * len(values), dtype="string"),
            }
        )
    else:
        models = pd.read_csv(io.BytesIO(table), dtype={"organisation": "string"})
    description = _descriptions.HELM_LITE.format(
        scenarios=", ".join(names),
        source=_benchmark_prediction_source(),
        names=_provenance(table, HELM_MODELS, "numbered"),
    )
    return _bunch(values, items, models, description, return_X_y)


def fetch_open_llm(
    scenario: str | Sequence[str] | None = None,
    *,
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[pd.DataFrame, pd.Series]:
    """Load the correctness of language models on the Open LLM Leaderboard.

    Files are downloaded once from [1]_, verified by their sha256 and cached.

    Parameters
    ----------
    scenario : str, sequence of str or None, default=None
        "arc_challenge" (218 models, 1,172 items), "ifeval" (448 models, 541 items) or "musr"
        (448 models, 756 items, three subscenarios); None is ifeval and musr, whose rows are the
        same. arc_challenge has other rows and cannot be combined.
    data_home : path, default=None
        The cache folder; see :func:`get_data_home`.
    download_if_missing : bool, default=True
        Whether to download what the cache lacks.
    return_X_y : bool, default=False
        Return ``(responses, scores)`` instead of a Bunch.

    Returns
    -------
    data : Bunch
        Read the item table as ``data["items"]``: ``data.items`` is the method of dict.

        responses : DataFrame of shape (n, m)
            0 or 1, float64; rows by model name, columns by item id ("musr/00012"). A model that
            was submitted twice has two rows, the second named "name#2".
        items : DataFrame of shape (m, 3)
            Columns item, scenario, subscenario (NA where there is none).
        models : DataFrame of shape (n, 4)
            Columns model, organisation (the name up to the slash, or NA), date (first day on the
            leaderboard; NaT where unknown, or if `model_dates.csv` is not in the cache) and
            duplicate_of (the model that a repeated name repeats, else NA).
        scores : Series of shape (n,)
            Benchmark score in [0, 1]: mean over scenarios of the item mean, subscenarios
            counting equally.
        DESCR : str
            Source, licence, citation, what is known about names and dates.
    (responses, scores) : tuple
        If `return_X_y` is True.

    Raises
    ------
    ValueError
        If a scenario is unknown, given twice or cannot be combined.
    OSError
        If a file is neither in the cache nor can be downloaded.

    References
    ----------
    .. [1] https://github.com/socialfoundations/benchmark-prediction
    .. [2] Fourrier, C. et al. (2024). Open LLM Leaderboard v2. Hugging Face.

    Examples
    --------
    >>> from sklearn_irt.datasets import fetch_open_llm
    >>> data = fetch_open_llm("ifeval")  # doctest: +SKIP
    >>> data.models["duplicate_of"].notna().sum()  # doctest: +SKIP
    19
    """
    names = _scenarios(scenario, OPEN_LLM, default=["ifeval", "musr"])
    if len(names) > 1 and "arc_challenge" in names:
        raise ValueError(
            'scenario "arc_challenge" has other models as rows and cannot be combined with '
            f"others; got {names}"
        )
    home = get_data_home(data_home)
    values, items = _load_matrices(names, OPEN_LLM, home, download_if_missing)
    published = _load(f"{names[0]}_models", home, download_if_missing)
    models = _open_llm_models(published)
    table = read_cached(OPEN_LLM_DATES, home)
    dates = _dates(table)
    models.insert(2, "date", pd.to_datetime(pd.Series(published).map(dates)))
    description = _descriptions.OPEN_LLM.format(
        scenarios=", ".join(names),
        source=_benchmark_prediction_source(),
        dates=_provenance(table, OPEN_LLM_DATES, "unknown"),
    )
    return _bunch(values, items, models, description, return_X_y)


def fetch_glue(
    scenario: str | Sequence[str],
    *,
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[pd.DataFrame, pd.Series]:
    """Load the correctness of 87 models on tasks of GLUE.

    Files are downloaded once from [1]_, verified by their sha256 and cached.

    Parameters
    ----------
    scenario : str or sequence of str
        "rte" (277 items), "mrpc" (408) or "sst2" (872). Several are put side by side, which
        takes for granted that a row is the same model in each: the source does not say so, and
        `DESCR` says why it is likely.
    data_home : path, default=None
        The cache folder; see :func:`get_data_home`.
    download_if_missing : bool, default=True
        Whether to download what the cache lacks.
    return_X_y : bool, default=False
        Return ``(responses, scores)`` instead of a Bunch.

    Returns
    -------
    data : Bunch
        Read the item table as ``data["items"]``: ``data.items`` is the method of dict.

        responses : DataFrame of shape (87, m)
            0 or 1, float64; rows "model_00" and so on (the names are not published), columns by
            item id ("rte/00012").
        items : DataFrame of shape (m, 3)
            Columns item, scenario, subscenario (all NA).
        models : DataFrame of shape (87, 1)
            Column model.
        scores : Series of shape (87,)
            Benchmark score in [0, 1]: mean over scenarios of the item mean.
        DESCR : str
            Source, licence, citation, what is known about the rows.
    (responses, scores) : tuple
        If `return_X_y` is True.

    Raises
    ------
    ValueError
        If a scenario is unknown or given twice.
    OSError
        If a file is neither in the cache nor can be downloaded.

    References
    ----------
    .. [1] https://github.com/socialfoundations/benchmark-prediction
    .. [2] Wang, A. et al. (2019). GLUE: A Multi-Task Benchmark and Analysis Platform for Natural
       Language Understanding. ICLR.

    Examples
    --------
    >>> from sklearn_irt.datasets import fetch_glue
    >>> fetch_glue("rte").responses.shape  # doctest: +SKIP
    (87, 277)
    """
    names = _scenarios(scenario, GLUE, default=None)
    home = get_data_home(data_home)
    values, items = _load_matrices(names, GLUE, home, download_if_missing)
    models = pd.DataFrame({"model": [f"model_{row:02d}" for row in range(len(values))]})
    description = _descriptions.GLUE.format(
        scenarios=", ".join(names), source=_benchmark_prediction_source()
    )
    return _bunch(values, items, models, description, return_X_y)


def fetch_alpaca_eval(
    *,
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[pd.DataFrame, pd.Series]:
    """Load the win probabilities of 58 language models on AlpacaEval 2.0.

    If the table is not in the cache, it is derived from the annotation files of [1]_ (58
    downloads, about 200 MB, not kept), verified row by row, and cached.

    Parameters
    ----------
    data_home : path, default=None
        The cache folder; see :func:`get_data_home`.
    download_if_missing : bool, default=True
        Whether to download what the cache lacks.
    return_X_y : bool, default=False
        Return ``(responses, scores)`` instead of a Bunch.

    Returns
    -------
    data : Bunch
        Read the item table as ``data["items"]``: ``data.items`` is the method of dict.

        responses : DataFrame of shape (58, 805)
            Win probability over the baseline gpt4_1106_preview, in [0, 1], to six decimals; 10
            cells are NaN. Rows by model name, columns by item id ("koala/131").
        items : DataFrame of shape (805, 3)
            Columns item, scenario ("alpaca_eval"), subscenario (all NA).
        models : DataFrame of shape (58, 2)
            Columns model, date (day on which it was added to the repository; NaT if
            `first_listed.csv` is not in the cache).
        scores : Series of shape (58,)
            Mean win probability over the cells that are not missing, in [0, 1].
        DESCR : str
            Source, licence, citation, what was dropped.
    (responses, scores) : tuple
        If `return_X_y` is True.

    Raises
    ------
    OSError
        If the table is neither in the cache nor can be derived.

    References
    ----------
    .. [1] https://github.com/tatsu-lab/alpaca_eval
    .. [2] Dubois, Y. et al. (2024). Length-Controlled AlpacaEval: A Simple Way to Debias
       Automatic Evaluators. arXiv:2404.04475.

    Examples
    --------
    >>> from sklearn_irt.datasets import fetch_alpaca_eval
    >>> fetch_alpaca_eval().responses.shape  # doctest: +SKIP
    (58, 805)
    """
    home = get_data_home(data_home)
    names, ids, values = _alpaca.load_table(home, download_if_missing)
    items = item_table({"alpaca_eval": len(ids)})
    items["item"] = ids
    table = read_cached(ALPACA_DATES, home)
    models = pd.DataFrame({"model": names})
    models["date"] = pd.to_datetime(models["model"].map(_dates(table)))
    description = _descriptions.ALPACA_EVAL.format(
        commit=_alpaca.COMMIT, dates=_provenance(table, ALPACA_DATES, "unknown")
    )
    return _bunch(values, items, models, description, return_X_y)


def _scenarios(
    scenario: object, known: Mapping[str, object], default: list[str] | None
) -> list[str]:
    """List the scenarios asked for."""
    choices = ", ".join(f'"{name}"' for name in known)
    if scenario is None and default is not None:
        return default
    names = [scenario] if isinstance(scenario, str) else scenario
    if not isinstance(names, list | tuple) or not names:
        raise ValueError(f"scenario must be one or a list of {choices}; got {scenario!r}")
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"scenario must be one or a list of {choices}; got {name!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"scenario must not name one twice; got {scenario!r}")
    return list(names)


def _load(name: str, home: Path, download_if_missing: bool) -> np.ndarray | list[str]:
    file = PublicFile(f"benchmark_prediction/{name}.jbl", SHA256[name], f"{SOURCE}/{name}.jbl")
    return read_joblib(read_file(file, home, download_if_missing), name=str(home / file.name))


def _load_matrices(
    names: list[str],
    layout: Mapping[str, int | Mapping[str, int]],
    home: Path,
    download_if_missing: bool,
) -> tuple[np.ndarray, pd.DataFrame]:
    matrices = [_load(name, home, download_if_missing) for name in names]
    values = np.ascontiguousarray(np.hstack(matrices), dtype=np.float64)
    return values, item_table({name: layout[name] for name in names})


def _open_llm_models(published: list[str]) -> pd.DataFrame:
    """Give repeated names a number, so that the index of the responses is unique."""
    seen: dict[str, int] = {}
    unique, duplicate_of = [], []
    for name in published:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
        duplicate_of.append(None if seen[name] == 1 else name)
    organisations = [name.split("/")[0] if "/" in name else None for name in published]
    return pd.DataFrame(
        {
            "model": unique,
            "organisation": pd.array(organisations, dtype="string"),
            "duplicate_of": pd.array(duplicate_of, dtype="string"),
        }
    )


def _dates(table: bytes | None) -> dict[str, pd.Timestamp]:
    if table is None:
        return {}
    frame = pd.read_csv(io.BytesIO(table), parse_dates=["date"])
    return dict(zip(frame["model"], frame["date"], strict=True))


def _benchmark_prediction_source() -> str:
    return _descriptions.BENCHMARK_PREDICTION_SOURCE.format(commit=COMMIT)


def _provenance(table: bytes | None, file: PublicFile, fallback: str) -> str:
    text = _descriptions.NOT_IN_CACHE if table is None else _descriptions.FROM_CACHE
    return text.format(name=file.name, fallback=fallback)


def _bunch(
    values: np.ndarray,
    items: pd.DataFrame,
    models: pd.DataFrame,
    description: str,
    return_X_y: bool,
) -> Bunch | tuple[pd.DataFrame, pd.Series]:
    index = pd.Index(models["model"], name="model")
    responses = pd.DataFrame(values, index=index, columns=items["item"].to_numpy(), copy=False)
    scores = pd.Series(benchmark_scores(values, items), index=index, name="score")
    if return_X_y:
        return responses, scores
    return Bunch(responses=responses, items=items, models=models, scores=scores, DESCR=description)
