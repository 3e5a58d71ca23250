package pipeline

import (
	"fmt"
	"slices"

	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// planLevels applies the steps of the ladder to the stages.
func planLevels(p plan.Pipeline) ([]level, error) {
	ladder := []plan.DegradeStep(nil)
	if p.Degrade != nil {
		ladder = p.Degrade.Ladder
	}
	switch {
	case len(ladder) > 0 && !p.Source.Live:
		return nil, fmt.Errorf("%w: degrade: only a live source can skip work; others wait", ErrPlan)
	case len(ladder) > registry.MaxLadder:
		return nil, fmt.Errorf("%w: degrade: %d steps; at most %d are allowed", ErrPlan, len(ladder), registry.MaxLadder)
	}
	var levels []level
	for n, stages := range registry.Levels(&p) {
		l := level{stages: stages}
		if n > 0 {
			if err := checkStep(ladder[n-1], stages); err != nil {
				return nil, fmt.Errorf("%w: degrade, step %d: %w", ErrPlan, n, err)
			}
			if l.fps = ladder[n-1].FPS; l.fps == 0 {
				l.fps = levels[n-1].fps
			}
		}
		levels = append(levels, l)
	}
	return levels, nil
}

// checkStep checks that the stages that a step of the ladder changes exist.
func checkStep(st plan.DegradeStep, stages []plan.PipelineStage) error {
	if st.FPS < 0 {
		return fmt.Errorf("%d fps", st.FPS)
	}
	find := func(field, id string) error {
		if slices.ContainsFunc(stages, func(s plan.PipelineStage) bool { return s.ID == id && registry.StageOf(s.Kind).Ladder == field }) {
			return nil
		}
		return fmt.Errorf("no %s stage %q", registry.KindChangedBy(field), id)
	}
	for _, m := range st.Models {
		if err := find(registry.LadderModels, m.Stage); err != nil {
			return err
		}
	}
	for _, z := range st.Sizes {
		if err := find(registry.LadderSizes, z.Stage); err != nil {
			return err
		}
	}
	return nil
}
