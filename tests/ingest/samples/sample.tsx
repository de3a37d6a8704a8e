import { FC, useMemo } from 'react';

interface Props { title: string }

export const Button: FC<Props> = ({ title }) => {
  const label = useMemo(() => title.trim(), [title]);
  return <Fancy.Frame><Label text={label} onClick={() => press(label)} /></Fancy.Frame>;
};

export class Panel extends React.Component<Props> {
  render() { return <Button title="x" />; }
}
